//! Connections: how many there may be, and how long one may be silent.
//!
//! ```text
//! accept ── one of --max-connections ──▶ requests, one after the other
//!    └───── one of 16 more ────────────▶ 503 for one request, then closed
//!    └───── else not accepted: it waits in the system's queue
//! ```
//! A header that does not come whole in 10 s closes the connection, and so does as much time without a next request. A header
//! of 64 KiB is answered with 431. Words that a client does not take for a minute close the connection too (Linux).

use std::convert::Infallible;
use std::future::ready;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use super::http::shape_of;

/// How long the header of a request may take, counted from when it could begin.
const HEADER: Duration = Duration::from_secs(10);
/// Most bytes of a header.
pub(crate) const LONGEST_HEADER: usize = 64 << 10;
/// How long a client may leave what it was sent.
#[cfg(target_os = "linux")]
const UNTAKEN: Duration = Duration::from_secs(60);
/// Connections beyond the limit that are told so at a time.
const REFUSED: usize = 16;
/// How long to wait when the system has no connection to give.
const NONE_LEFT: Duration = Duration::from_secs(1);

/// How many connections there may be, and the gauge that shows how many there are.
#[derive(Clone)]
pub(crate) struct Limit {
    pub(crate) most: u32,
    pub(crate) open: Gauge,
}

/// Serve until `told`; then answer what was asked already.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limit: Limit,
    told: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let taken = Arc::new(Semaphore::new(limit.most as usize));
    let refused = Arc::new(Semaphore::new(REFUSED));
    let mut told = std::pin::pin!(told);
    loop {
        let next = async {
            let stream = accept(&listener).await;
            (stream, place(&taken, &refused).await)
        };
        let (stream, place) = tokio::select! {
            next = next => next,
            () = &mut told => break,
        };
        set_options(&stream);
        match place {
            Place::Served(permit) => {
                let service = TowerToHyperService::new(router.clone());
                let connection = http().serve_connection(TokioIo::new(stream), service);
                let connection = graceful.watch(connection);
                let open = limit.open.clone();
                open.inc();
                tokio::spawn(async move {
                    // A client that breaks off, or is too slow, is nobody's news.
                    let _ = connection.await;
                    open.dec();
                    drop(permit);
                });
            }
            Place::Refused(permit) => {
                let most = limit.most;
                let service = service_fn(move |request| ready(refuse(most, &request)));
                let connection = http()
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    let _ = connection.await;
                    drop(permit);
                });
            }
        }
    }
    // Nobody new is let in while the others are answered.
    drop(listener);
    graceful.shutdown().await;
}

fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(LONGEST_HEADER);
    http
}

/// What becomes of a connection. The permit is held while it is open.
enum Place {
    Served(OwnedSemaphorePermit),
    Refused(OwnedSemaphorePermit),
}

async fn place(taken: &Arc<Semaphore>, refused: &Arc<Semaphore>) -> Place {
    const OPEN: &str = "nobody closes it";
    tokio::select! {
        biased;
        permit = Arc::clone(taken).acquire_owned() => Place::Served(permit.expect(OPEN)),
        permit = Arc::clone(refused).acquire_owned() => Place::Refused(permit.expect(OPEN)),
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The client was gone before it was heard.
            Err(error) if is_of_client(error.kind()) => {}
            // Too many open files, mostly: some will be closed.
            Err(error) => {
                super::log(format_args!("cannot accept a connection: {error}"));
                tokio::time::sleep(NONE_LEFT).await;
            }
        }
    }
}

fn is_of_client(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

/// Send tokens as they come, and do not wait for a client that takes nothing. A system that knows no such option serves
/// all the same.
fn set_options(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, UNTAKEN.as_millis() as u32);
    }
}

fn refuse(most: u32, request: &Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(ApiError::Crowded(most).response(shape_of(request.uri().path())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::middleware;
    use axum::routing::get;
    use std::io::{Read, Write};

    async fn meets_a_bug() -> &'static str {
        panic!("a fault of the test")
    }

    #[test]
    fn a_panic_is_a_reply_and_the_connection_goes_on() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let router = Router::new()
            .route("/v1/messages", get(meets_a_bug))
            .route("/v1/chat/completions", get(meets_a_bug))
            .layer(middleware::from_fn(super::super::http::caught));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let limit = Limit {
            most: 1,
            open: Gauge::default(),
        };
        runtime.spawn(serve(listener, router, limit, std::future::pending()));
        let mut client = std::net::TcpStream::connect(address).unwrap();
        for (path, word) in [
            (
                "/v1/messages",
                r#"{"type":"error","error":{"type":"api_error""#,
            ),
            ("/v1/chat/completions", r#""type":"server_error""#),
            ("/v1/messages", "api_error"),
        ] {
            write!(client, "GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
            let mut bytes = [0; 4096];
            let n = client.read(&mut bytes).unwrap();
            let reply = String::from_utf8_lossy(&bytes[..n]);
            assert!(reply.starts_with("HTTP/1.1 500"), "{reply}");
            assert!(reply.contains(word), "{reply}");
        }
        runtime.shutdown_background();
    }
}
