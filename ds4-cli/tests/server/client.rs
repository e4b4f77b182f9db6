//! A server under test, and a client that can do what a well-behaved one cannot: send anything, and leave at any time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

pub(crate) struct Server {
    child: Child,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// On a free port, with the demo model and `arguments`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(&[], arguments)
    }

    /// As [`Self::start`], with variables of the environment.
    pub(crate) fn start_in(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ds4-server"))
            .args(["-m", DEMO, "--port", "0", "-c", "2048", "-t", "1"])
            .args(arguments)
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut address = None;
        for line in lines.by_ref() {
            let line = line.unwrap();
            address = line.split("http://").nth(1).map(str::to_owned);
            log.lock().unwrap().push(line);
            if address.is_some() {
                break;
            }
        }
        let address = address.unwrap_or_else(|| panic!("no server: {:?}", log.lock().unwrap()));
        let rest = Arc::clone(&log);
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| rest.lock().unwrap().push(line));
        });
        Self {
            child,
            address,
            log,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream
    }

    /// Send `raw` and read until the server closes.
    pub(crate) fn raw(&self, raw: &[u8]) -> Reply {
        let mut stream = self.connect();
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(raw);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Reply::parse(&bytes)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.raw(
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .as_bytes(),
        )
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.raw(&request(path, body.to_string().as_bytes()))
    }

    /// Send a request and leave after `bytes` of the reply.
    pub(crate) fn leave_after(&self, path: &str, body: &Value, bytes: usize) {
        let mut stream = self.connect();
        stream
            .write_all(&request(path, body.to_string().as_bytes()))
            .unwrap();
        let mut some = vec![0; bytes];
        let _ = stream.read_exact(&mut some);
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// Send a request and leave when it is being answered.
    pub(crate) fn leave_when_active(&self, path: &str, body: &Value) {
        // An answer that has just ended may still be counted.
        self.wait_until_idle();
        let mut stream = self.connect();
        stream
            .write_all(&request(path, body.to_string().as_bytes()))
            .unwrap();
        let from = Instant::now();
        while self.metric("ds4_active_answers") < 1.0 {
            assert!(from.elapsed() < Duration::from_secs(20), "never begun");
        }
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// A number of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text;
        text.lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Wait until nothing is being answered.
    pub(crate) fn wait_until_idle(&self) {
        let from = Instant::now();
        while self.metric("ds4_active_answers") > 0.0 || self.metric("ds4_waiting_requests") > 0.0 {
            assert!(from.elapsed() < Duration::from_secs(20), "still busy");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ask it to end, and how it did.
    pub(crate) fn terminate(mut self) -> i32 {
        signal(self.pid(), "TERM");
        let from = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(from.elapsed() < Duration::from_secs(30), "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Send a signal with the tool that every system has.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

pub(crate) fn request(path: &str, body: &[u8]) -> Vec<u8> {
    let mut raw = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    raw.extend(body);
    raw
}

#[derive(Debug)]
pub(crate) struct Reply {
    /// 0 when there was no reply.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let all = String::from_utf8_lossy(bytes);
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        let chunked = head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        Self {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            text: if chunked {
                unchunk(body)
            } else {
                body.to_owned()
            },
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The data of its events.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The content of a streamed chat answer.
    pub(crate) fn content(&self) -> String {
        self.events()
            .iter()
            .filter_map(|e| {
                e["choices"][0]["delta"]["content"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect()
    }
}

fn unchunk(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else {
            break;
        };
        if size == 0 || rest.len() < size {
            break;
        }
        text += &rest[..size];
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}
