//! Many clients at once, some of whom leave and some of whom talk nonsense.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::chat;
use crate::client::{Reply, Server, request};
use crate::hostile::{Random, malformed};

pub(crate) const CITIES: [&str; 8] = [
    "France", "Japan", "Peru", "Italy", "Spain", "Egypt", "Norway", "Kenya",
];

fn bodies() -> Vec<Value> {
    let ask = |city| {
        chat(
            &format!("What is the capital of {city}?"),
            &json!({ "stream": true }),
        )
    };
    CITIES.into_iter().map(ask).collect()
}

/// Resident memory, in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    left: AtomicUsize,
    refused: AtomicUsize,
    /// Seconds to the first content.
    first: Mutex<Vec<f64>>,
    memory: Mutex<Vec<u64>>,
}

/// Read a stream; the reply, and the seconds until its first content.
fn stream(server: &Server, raw: &[u8]) -> (Reply, f64) {
    let from = Instant::now();
    let mut socket = server.connect();
    socket.write_all(raw).unwrap();
    let (mut bytes, mut piece, mut first) = (Vec::new(), [0; 4096], None);
    loop {
        let n = socket.read(&mut piece).unwrap();
        if n == 0 {
            break;
        }
        bytes.extend(&piece[..n]);
        // The first event only says that an assistant speaks.
        let content = bytes.windows(10).filter(|w| w == b"\"content\":").count();
        if first.is_none() && content > 1 {
            first = Some(from.elapsed().as_secs_f64());
        }
    }
    (Reply::parse(&bytes), first.unwrap_or_default())
}

fn one(server: &Server, random: &mut Random, i: usize, want: &[String], seen: &Seen) {
    if i % 5 == 4 {
        let reply = server.raw(&malformed(random));
        assert!((400..500).contains(&reply.status), "{reply:?}");
        seen.refused.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let which = random.next(CITIES.len() as u64) as usize;
    let raw = request(
        "/v1/chat/completions",
        bodies()[which].to_string().as_bytes(),
    );
    if random.next(4) == 0 {
        let mut socket = server.connect();
        socket.write_all(&raw).unwrap();
        let mut some = vec![0; random.next(1200) as usize];
        let _ = socket.read_exact(&mut some);
        let _ = socket.shutdown(Shutdown::Both);
        seen.left.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let (reply, first) = stream(server, &raw);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.content(), want[which], "{}", CITIES[which]);
    seen.first.lock().unwrap().push(first);
    seen.answered.fetch_add(1, Ordering::Relaxed);
}

fn load(clients: usize, requests: usize) {
    let server = Server::start(&["--sessions", "4"]);
    let want: Vec<String> = bodies()
        .iter()
        .map(|body| server.post("/v1/chat/completions", body).content())
        .collect();
    assert!(want[0].contains("Paris"));
    let (next, seen, from) = (AtomicUsize::new(0), Seen::default(), Instant::now());
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (server, next, seen, want) = (&server, &next, &seen, &want);
            scope.spawn(move || {
                let mut random = Random(client as u64);
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= requests {
                        return;
                    }
                    one(server, &mut random, i, want, seen);
                    if i % (requests / 20).max(1) == 0 {
                        seen.memory.lock().unwrap().push(resident(server.pid()));
                    }
                }
            });
        }
    });
    let seconds = from.elapsed().as_secs_f64();
    server.wait_until_idle();
    let mut first = seen.first.into_inner().unwrap();
    first.sort_by(f64::total_cmp);
    let memory = seen.memory.into_inner().unwrap();
    let count = |n: &AtomicUsize| n.load(Ordering::Relaxed);
    println!(
        "{requests} requests of {clients} clients in {seconds:.1} s: {} answered, {} left, {} refused; first content p50 {:.3} s, \
         p95 {:.3} s; {:.0} tokens/s; memory in KiB {memory:?}",
        count(&seen.answered),
        count(&seen.left),
        count(&seen.refused),
        first[first.len() / 2],
        first[first.len() * 95 / 100],
        server.metric("ds4_completion_tokens_total") / seconds,
    );
    assert!(!server.log().iter().any(|line| line.contains("panic")));
    // Whatever grows without end would grow over the second half.
    let (half, end) = (memory[memory.len() / 2], memory[memory.len() - 1]);
    assert!(end < half + half / 20 + 2048, "memory grows: {memory:?}");
}

#[test]
fn every_client_gets_the_answer_it_would_get_alone() {
    load(16, 240);
}

#[test]
#[ignore = "minutes"]
fn ten_thousand_requests_of_sixty_four_clients() {
    load(64, 10_000);
}
