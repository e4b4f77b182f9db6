//! Connections that say nothing, too much, or are too many.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Reply, Server, request};
use crate::{ANSWER, QUESTION, chat};

/// Ask for `path` and leave the connection open; the reply, whose length is known.
fn ask(stream: &mut TcpStream, path: &str) -> Reply {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0, "closed: {}", String::from_utf8_lossy(&bytes));
        bytes.extend(&piece[..n]);
        let reply = Reply::parse(&bytes);
        let length = reply.head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse::<usize>().unwrap())
        });
        if length.is_some_and(|length| reply.text.len() >= length) {
            return reply;
        }
    }
}

/// How long it takes until the server closes, and what it says by then.
fn closing(mut stream: TcpStream) -> (Duration, Vec<u8>) {
    let from = Instant::now();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    (from.elapsed(), rest)
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let server = Server::start(&[]);
    let silent = server.connect();
    let mut begun = server.connect();
    begun
        .write_all(b"GET /health HTTP/1.1\r\nhost: loc")
        .unwrap();
    let mut idle = server.connect();
    assert_eq!(ask(&mut idle, "/health").status, 200);
    assert_eq!(ask(&mut idle, "/health").status, 200);
    // Each byte of it is in time, and the whole never comes.
    let mut slow = server.connect();
    let mut also_slow = slow.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let from = Instant::now();
            while from.elapsed() < Duration::from_secs(25) && slow.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let _ = also_slow.write_all(b"GET /");
        let waits = [silent, begun, idle, also_slow].map(|s| scope.spawn(move || closing(s)));
        for (what, wait) in ["silent", "begun", "idle", "slow"].iter().zip(waits) {
            let (took, said) = wait.join().unwrap();
            let seconds = took.as_secs_f64();
            assert!((8.0..24.0).contains(&seconds), "{what}: {seconds} s");
            assert!(said.is_empty(), "{what}: {said:?}");
        }
    });
    // Whoever is answered may take longer.
    let reply = server.post("/v1/chat/completions", &chat(QUESTION, &json!({})));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], ANSWER);
    // Only the one that asks.
    assert_eq!(server.metric("ds4_connections"), 1.0);
}

#[test]
fn a_header_that_is_too_long_is_refused() {
    let server = Server::start(&[]);
    let with = |bytes: usize| {
        let filler = "x".repeat(bytes);
        let raw = format!(
            "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-filler: {filler}\r\n\r\n"
        );
        server.raw(raw.as_bytes())
    };
    assert_eq!(with(60 << 10).status, 200);
    let refused = with(64 << 10);
    assert_eq!(refused.status, 431);
    assert!(refused.text.contains("65536 bytes"), "{refused:?}");
    // Far beyond, the connection may be gone before the reply is read.
    assert!([0, 431].contains(&with(8 << 20).status));
    assert_eq!(with(60 << 10).status, 200);
}

#[test]
fn who_comes_when_too_many_are_connected_is_told_so() {
    let server = Server::start(&["--max-connections", "2"]);
    let mut open = [server.connect(), server.connect()];
    for stream in &mut open {
        assert_eq!(ask(stream, "/health").status, 200);
    }
    let refused = server.get("/health");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"]["type"], "server_error");
    let refused = server.post("/v1/messages", &json!({}));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"]["type"], "overloaded_error");
    // Those who are in are served as before; with their leave there is room.
    let [mut stays, leaves] = open;
    assert_eq!(ask(&mut stays, "/health").status, 200);
    drop(leaves);
    let from = Instant::now();
    while server.get("/health").status != 200 {
        assert!(from.elapsed() < Duration::from_secs(5), "no room");
    }
}

#[test]
fn a_second_request_on_one_connection_is_answered_too() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    for _ in 0..3 {
        assert_eq!(ask(&mut stream, "/v1/models").status, 200);
    }
    stream.write_all(&request("/v1/nothing", b"{}")).unwrap();
    let (_, rest) = closing(stream);
    assert_eq!(Reply::parse(&rest).status, 404);
}
