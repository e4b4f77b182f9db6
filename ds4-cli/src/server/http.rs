//! Routes: which URL leads where, and what holds for all of them.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;

use axum::Json;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tower_http::cors::{Any as AnyOrigin, CorsLayer};

use super::args::Args;
use super::body::with_body;
use super::connections::LONGEST_HEADER;
use super::error::{ApiError, Shape};
use super::fields::Route;
use super::params::Body;
use super::reply::{Dialect, respond};
use super::state::{Ready, Shared};
use super::{chat, completions, messages, responses, tokens};

const PAGE: &str = include_str!("page.html");

/// All routes.
pub(crate) fn router(app: Shared) -> Router {
    let api = Router::new()
        .route("/models", get(models))
        .route("/models/{*id}", get(model))
        .route("/chat/completions", answer(Route::Chat))
        .route("/completions", answer(Route::Completions))
        .route("/messages", answer(Route::Messages))
        .route("/responses", answer(Route::Responses))
        .route("/messages/count_tokens", post(count_tokens));
    let router = Router::new()
        .nest("/v1", api.clone())
        .merge(api)
        .route("/", get(async || Html(PAGE)))
        .route("/health", get(health))
        .route("/v1/health", get(health))
        .route("/metrics", get(metrics))
        .route("/stats", get(stats))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/apply-template", post(apply_template))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .layer(middleware::from_fn(caught));
    let router = if app.args.cors {
        let open = CorsLayer::new()
            .allow_origin(AnyOrigin)
            .allow_methods([Method::GET, Method::POST, Method::OPTIONS])
            .allow_headers(AnyOrigin);
        router.layer(open).layer(middleware::from_fn(no_content))
    } else {
        router
    };
    router
        .layer(middleware::from_fn_with_state(app.clone(), name))
        .with_state(app)
}

fn answer(route: Route) -> axum::routing::MethodRouter<Shared> {
    post(async move |State(app): State<Shared>, request: Request| {
        let shape = match route {
            Route::Messages => Shape::Anthropic,
            _ => Shape::OpenAi,
        };
        let result = match route {
            Route::Chat => run(&app, request, chat::ready).await,
            Route::Completions => run(&app, request, completions::ready).await,
            Route::Messages => run(&app, request, messages::ready).await,
            Route::Responses => run(&app, request, responses::ready).await,
        };
        result.unwrap_or_else(|error| error.response(shape))
    })
}

/// Read a request and answer it.
async fn run<D: Dialect>(
    app: &Shared,
    request: Request,
    ready: fn(&Shared, Body) -> Result<Ready<D>, ApiError>,
) -> Result<Response, ApiError> {
    let ready = with_body(app, request, ready).await?;
    let updates = app.send(ready.request, ready.field).await?;
    Ok(respond(updates, ready.dialect, ready.stream).await)
}

/// Every reply has a name, by the header that each kind of client looks for.
async fn name(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::try_from(app.id("req_")) {
        for header in ["request-id", "x-request-id"] {
            let header = HeaderName::from_static(header);
            response.headers_mut().insert(header, id.clone());
        }
    }
    response
}

/// A panic is a reply too, and the connection goes on.
pub(crate) async fn caught(request: Request, next: Next) -> Response {
    let shape = shape_of(request.uri().path());
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => ApiError::bug(&*panic).response(shape),
    }
}

/// The answer to OPTIONS has no body.
async fn no_content(request: Request, next: Next) -> Response {
    let options = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    if options && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Who may ask; and an answer to OPTIONS.
async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if let Err(error) = header(&request).and_then(|()| foreign(&app, request.headers())) {
        return error.response(shape_of(path));
    }
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let open = matches!(path, "/" | "/health" | "/v1/health");
    match &app.args.api_key {
        Some(key) if !open && !has_key(request.headers(), key) => {
            ApiError::Key.response(shape_of(path))
        }
        _ => next.run(request).await,
    }
}

/// Refuse a header that is too long, and one that HTTP/1.1 does not allow.
fn header(request: &Request) -> Result<(), ApiError> {
    let line = request
        .uri()
        .path_and_query()
        .map_or(0, |p| p.as_str().len());
    let fields = request.headers().iter();
    // A colon, a blank and the end of a line are four.
    let bytes = fields.map(|(name, value)| name.as_str().len() + value.len() + 4);
    if line + bytes.sum::<usize>() > LONGEST_HEADER {
        return Err(ApiError::Header(LONGEST_HEADER));
    }
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() >= Version::HTTP_11) {
        return Err(ApiError::Invalid {
            message: format!("bad HTTP request: {hosts} Host headers, expected one"),
            param: None,
        });
    }
    Ok(())
}

/// Refuse pages that a browser loaded from elsewhere: any page can send to this machine, and read the answer too when its
/// own name leads here. Programs that are no browsers send no origin.
fn foreign(app: &Shared, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).map(|v| v.to_str().unwrap_or_default());
    let host = text(header::HOST);
    if let Some(host) = host.filter(|host| !may_be_called(&app.args, host)) {
        let what = format!("unknown host {host:?}; --allowed-host takes its name");
        return Err(ApiError::Foreign(what));
    }
    let Some(origin) = text(header::ORIGIN).filter(|_| !app.args.cors) else {
        return Ok(());
    };
    let from = origin.split_once("://").map(|(_, authority)| authority);
    match (from, host) {
        (Some(from), Some(host)) if from.eq_ignore_ascii_case(host) => Ok(()),
        _ => Err(ApiError::Foreign(format!(
            "pages of {origin:?} may not use this server; with --cors they may"
        ))),
    }
}

/// Whether a client may know the server as `host`. Where other machines reach it, any name may lead there.
fn may_be_called(args: &Args, host: &str) -> bool {
    let is_local = |name: &str| {
        let address = name.trim_start_matches('[').trim_end_matches(']');
        let loopback = |a: IpAddr| a.is_loopback();
        name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(loopback)
    };
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let (name, own) = (authority.host(), &args.host);
    let known = || std::iter::once(own).chain(&args.allowed_host);
    !is_local(own) || is_local(name) || known().any(|known| known.eq_ignore_ascii_case(name))
}

fn has_key(headers: &HeaderMap, key: &str) -> bool {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
    });
    let plain = headers.get("x-api-key").map(|v| v.as_bytes());
    let mut given = [bearer, plain].into_iter().flatten();
    given.any(|given| same(given, key.as_bytes()))
}

/// Whether two texts are equal, in a time that says nothing about where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

/// The shape of errors for clients of a path.
pub(crate) fn shape_of(path: &str) -> Shape {
    if path.starts_with("/v1/messages") || path.starts_with("/messages") {
        Shape::Anthropic
    } else {
        Shape::OpenAi
    }
}

async fn unknown(request: Request) -> Response {
    ApiError::NotFound("unknown endpoint".to_owned()).response(shape_of(request.uri().path()))
}

async fn not_allowed(request: Request) -> Response {
    ApiError::Method.response(shape_of(request.uri().path()))
}

async fn health(State(app): State<Shared>) -> Response {
    if app.worker.is_running() {
        Json(json!({ "status": "ok", "model_loaded": app.model })).into_response()
    } else {
        let status = json!({ "status": "error", "reason": "the engine has stopped" });
        (StatusCode::SERVICE_UNAVAILABLE, Json(status)).into_response()
    }
}

async fn metrics(State(app): State<Shared>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text()).into_response()
}

/// The counters, and what is being answered.
async fn stats(State(app): State<Shared>) -> Response {
    let mut stats = app.metrics.json();
    stats["model"] = json!(app.model);
    stats["context"] = json!(app.engine.context());
    stats["sessions"] = json!(app.args.sessions);
    stats["uptime_seconds"] = json!(super::state::now().saturating_sub(app.started));
    Json(stats).into_response()
}

fn describe(app: &Shared) -> Value {
    let context = app.engine.context();
    let parameters: Vec<&str> = super::fields::honoured(Route::Chat).collect();
    json!({
        "id": app.model,
        "object": "model",
        "created": app.started,
        "owned_by": "ds4",
        "name": app.model,
        "context_length": context,
        "top_provider": {
            "context_length": context,
            "max_completion_tokens": app.args.tokens.min(context),
            "is_moderated": false,
        },
        "supported_parameters": parameters,
    })
}

/// As Anthropic describes a model.
fn describe_to_anthropic(app: &Shared) -> Value {
    json!({
        "type": "model",
        "id": app.model,
        "display_name": app.model,
        // Nobody knows when it was released; Anthropic writes that so.
        "created_at": "1970-01-01T00:00:00Z",
        "max_input_tokens": app.engine.context(),
        "max_tokens": app.args.tokens.min(app.engine.context()),
    })
}

/// Whose client asks, on routes that both have.
fn shape_for(headers: &HeaderMap) -> Shape {
    if headers.contains_key("anthropic-version") {
        Shape::Anthropic
    } else {
        Shape::OpenAi
    }
}

async fn models(State(app): State<Shared>, headers: HeaderMap) -> Response {
    let list = match shape_for(&headers) {
        Shape::OpenAi => json!({ "object": "list", "data": [describe(&app)] }),
        Shape::Anthropic => json!({
            "data": [describe_to_anthropic(&app)],
            "has_more": false,
            "first_id": app.model,
            "last_id": app.model,
        }),
    };
    Json(list).into_response()
}

async fn model(State(app): State<Shared>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let shape = shape_for(&headers);
    if id != app.model {
        let what = format!("the model `{id}` does not exist here; `{}` does", app.model);
        return ApiError::NotFound(what).response(shape);
    }
    Json(match shape {
        Shape::OpenAi => describe(&app),
        Shape::Anthropic => describe_to_anthropic(&app),
    })
    .into_response()
}

async fn count_tokens(State(app): State<Shared>, request: Request) -> Response {
    let counted = with_body(&app, request, messages::count_tokens).await;
    document(counted, Shape::Anthropic)
}

/// A document, or an error in the shape of `shape`.
pub(crate) fn document(result: Result<Value, ApiError>, shape: Shape) -> Response {
    match result {
        Ok(document) => Json(document).into_response(),
        Err(error) => error.response(shape),
    }
}

/// The prompt of a chat request, as text.
async fn apply_template(State(app): State<Shared>, request: Request) -> Response {
    let prompt = with_body(&app, request, |app, body| {
        let tokens = chat::prompt(app, body)?;
        Ok(json!({ "prompt": app.engine.tokenizer().decode(&tokens) }))
    });
    document(prompt.await, Shape::OpenAi)
}
