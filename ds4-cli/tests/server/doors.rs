//! Who may come in, and how the server goes out.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Server, request, signal};
use crate::{QUESTION, chat};

fn ask(server: &Server, host: &str, more: &str) -> u16 {
    let body = chat(QUESTION, &json!({ "max_tokens": 1 })).to_string();
    let raw = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: text/plain\r\n{more}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    server.raw(raw.as_bytes()).status
}

#[test]
fn pages_from_elsewhere_cannot_ask() {
    let server = Server::start(&["--allowed-host", "box.example"]);
    for (host, more, status) in [
        ("localhost:8000", "", 200),
        ("127.0.0.1:8000", "", 200),
        ("[::1]:8000", "", 200),
        ("BOX.example", "", 200),
        ("localhost:8000", "origin: http://localhost:8000\r\n", 200),
        ("localhost:8000", "origin: http://localhost:9000\r\n", 403),
        ("localhost:8000", "origin: https://evil.example\r\n", 403),
        ("localhost:8000", "origin: null\r\n", 403),
        // A name of somebody else that leads to this machine.
        ("evil.example", "origin: http://evil.example\r\n", 403),
        ("evil.example", "", 403),
        ("localhost.evil.example", "", 403),
        ("127.0.0.1@evil.example", "", 403),
    ] {
        assert_eq!(ask(&server, host, more), status, "{host} {more}");
    }
    let open = Server::start(&["--cors"]);
    let elsewhere = "origin: https://other.example\r\n";
    assert_eq!(ask(&open, "localhost", elsewhere), 200);
    assert_eq!(ask(&open, "evil.example", elsewhere), 403);
    // Others may know the machine by any name.
    let public = Server::start(&["--host", "0.0.0.0"]);
    assert_eq!(ask(&public, "box.example", ""), 200);
    assert_eq!(ask(&public, "box.example", elsewhere), 403);
}

#[test]
fn a_request_names_its_host() {
    let server = Server::start(&["--host", "0.0.0.0"]);
    for (head, status) in [
        ("GET /v1/models HTTP/1.1\r\nconnection: close", 400),
        (
            "GET /v1/models HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close",
            400,
        ),
        (
            "GET /v1/models HTTP/1.1\r\nhost: a\r\nconnection: close",
            200,
        ),
        // The older version has no such rule.
        ("GET /v1/models HTTP/1.0", 200),
    ] {
        let reply = server.raw(format!("{head}\r\n\r\n").as_bytes());
        assert_eq!(reply.status, status, "{head}: {reply:?}");
        if status == 400 {
            assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
        }
    }
}

#[test]
fn every_reply_has_a_name() {
    let server = Server::start(&["--api-key", "secret"]);
    let mut seen = std::collections::HashSet::new();
    for reply in [
        server.get("/health"),
        server.get("/nothing"),
        server.get("/v1/models"),
        server.post("/health", &json!({})),
        server.post("/v1/messages", &json!({})),
    ] {
        let value = |name: &str| {
            let mut lines = reply.head.lines().filter_map(|line| line.split_once(": "));
            let found = lines.find(|(n, _)| n.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let id = value("request-id").unwrap_or_else(|| panic!("{reply:?}"));
        assert!(id.starts_with("req_") && id.len() == 28, "{id}");
        assert_eq!(value("x-request-id").as_ref(), Some(&id));
        assert!(seen.insert(id), "a name twice");
    }
}

#[test]
fn a_body_that_never_comes_is_not_waited_for() {
    let server = Server::start(&[]);
    let from = Instant::now();
    let half = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    let reply = server.raw(half);
    assert_eq!(reply.status, 408, "{reply:?}");
    let took = from.elapsed().as_secs();
    assert!((9..30).contains(&took), "{took} s");
}

/// Let the engine work on something that takes long, without a client who waits for it.
fn busy() -> Server {
    let server = Server::start(&["-c", "16384", "--prefill-chunk", "16384"]);
    let body = chat(&"word ".repeat(12_000), &json!({})).to_string();
    let mut stream = server.connect();
    stream
        .write_all(&request("/v1/chat/completions", body.as_bytes()))
        .unwrap();
    // Tokens are made first, and the numbers of /metrics come after a turn, which is what takes long here.
    std::thread::sleep(Duration::from_secs(1));
    server
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let server = busy();
    signal(server.pid(), "TERM");
    std::thread::sleep(Duration::from_millis(300));
    let from = Instant::now();
    assert_eq!(server.terminate(), 1);
    // The step that is being computed would take minutes.
    assert!(from.elapsed() < Duration::from_secs(20));
}

#[test]
fn heavy_requests_stop_nobody_else() {
    let server = Server::start(&["--max-body-mb", "64", "-c", "1000000"]);
    let text = "word and another word, ".repeat(800_000);
    let body = json!({ "content": text }).to_string();
    std::thread::scope(|scope| {
        let heavy: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| server.raw(&request("/tokenize", body.as_bytes())).status))
            .collect();
        std::thread::sleep(Duration::from_millis(500));
        let mut slowest = Duration::ZERO;
        let mut probes = 0;
        while heavy.iter().any(|h| !h.is_finished()) {
            let from = Instant::now();
            assert_eq!(server.get("/health").status, 200);
            slowest = slowest.max(from.elapsed());
            probes += 1;
        }
        println!("{probes} probes, slowest {slowest:?}");
        assert!(
            probes > 20 && slowest < Duration::from_secs(1),
            "{probes} probes, slowest {slowest:?}"
        );
        for h in heavy {
            assert_eq!(h.join().unwrap(), 200);
        }
    });
}

#[test]
fn a_text_that_cannot_fit_is_refused_before_it_is_tokens() {
    let server = Server::start(&[]);
    let text = "x".repeat(10 << 20);
    for (path, body) in [
        ("/v1/chat/completions", chat(&text, &json!({}))),
        ("/v1/completions", json!({ "prompt": text })),
        ("/v1/completions", json!({ "prompt": vec![1; 5000] })),
    ] {
        let reply = server.post(path, &body);
        let error = &reply.json()["error"];
        assert_eq!(reply.status, 400, "{error}");
        assert_eq!(error["code"], "context_length_exceeded", "{error}");
    }
}
