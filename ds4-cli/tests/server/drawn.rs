//! Fields that decide how tokens are drawn reach the sampler.

use serde_json::{Value, json};

use crate::client::Server;
use crate::{ANSWER, QUESTION, chat};

fn answer(server: &Server, more: Value) -> String {
    let mut body = chat(
        QUESTION,
        &json!({ "temperature": 100, "max_tokens": 12, "min_p": 0 }),
    );
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let reply = server.post("/v1/chat/completions", &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    let content = reply.json()["choices"][0]["message"]["content"].clone();
    content.as_str().unwrap().to_owned()
}

#[test]
fn each_cut_of_the_distribution_leaves_the_likeliest() {
    let server = Server::start(&[]);
    for seed in 0..4 {
        let with = |name: &str, value: Value| answer(&server, json!({ "seed": seed, name: value }));
        // At this temperature every token is about as likely as any other.
        assert_ne!(answer(&server, json!({ "seed": seed })), ANSWER);
        assert_eq!(with("top_k", json!(1)), ANSWER);
        assert_eq!(with("top_p", json!(0)), ANSWER);
        assert_eq!(with("min_p", json!(1)), ANSWER);
        assert_eq!(with("temperature", json!(0)), ANSWER);
    }
}

#[test]
fn all_bits_of_a_seed_count() {
    let server = Server::start(&[]);
    let of = |seed: Value| answer(&server, json!({ "seed": seed }));
    // The first two are one and the same as a number of 53 bits.
    let seeds = [
        json!(1_u64 << 53),
        json!((1_u64 << 53) + 1),
        json!(u64::MAX),
        json!(u64::MAX - 1),
    ];
    let answers: Vec<String> = seeds.iter().map(|seed| of(seed.clone())).collect();
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, of(seeds[i].clone()));
        for other in &answers[i + 1..] {
            assert_ne!(answer, other, "{answers:?}");
        }
    }
    assert_eq!(of(json!(-1)), answers[2]);
    for wrong in [json!(1.5), json!("1"), json!(1e30)] {
        let reply = server.post(
            "/v1/chat/completions",
            &chat("x", &json!({ "seed": wrong })),
        );
        assert_eq!(
            (reply.status, &reply.json()["error"]["param"]),
            (400, &json!("seed"))
        );
    }
}
