//! A server with OpenAI's chat route.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use ds4_model::eval::{Answered, Case};
use serde_json::{Value, json};
use ureq::Agent;

use super::args::Args;
use crate::exit::Usage;

/// Largest reply, in bytes.
const REPLY: u64 = 64 << 20;
/// How often a busy server is asked again, at first after [`PAUSE`], then after twice as long each time.
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// The server.
pub(super) struct Remote {
    agent: Agent,
    url: String,
    key: Option<String>,
    model: String,
}

impl Remote {
    pub(super) fn new(args: &Args, url: &str) -> Result<Self> {
        if !url.starts_with("http://") {
            let why = "expected one that begins with http:// (encryption is left to a proxy)";
            return Err(Usage(format!("--url is `{url}`, {why}")).into());
        }
        let base = url.trim_end_matches('/');
        let url = match base.ends_with("/chat/completions") {
            true => base.to_owned(),
            false => format!("{base}/chat/completions"),
        };
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(args.timeout)))
            .http_status_as_error(false)
            .build();
        Ok(Self {
            agent: config.into(),
            url,
            key: args.api_key.clone(),
            model: args.remote_model.clone(),
        })
    }

    /// The answer to a question, question `index` of all.
    pub(super) fn answer(
        &self,
        args: &Args,
        seed: u64,
        index: usize,
        case: &Case,
    ) -> Result<Answered> {
        let mut body = json!({
            "model": self.model,
            "messages": case.messages,
            "max_tokens": args.budget().tokens,
            "temperature": args.temperature(),
            "top_p": args.sampling.top_p,
            "seed": seed.wrapping_add(index as u64) & (i64::MAX as u64),
        });
        // Only when it was asked for: not every server knows these fields.
        if let Some(thinking) = args.thinking.asked() {
            let render = thinking.render();
            body["chat_template_kwargs"] = json!({"enable_thinking": render.think.is_on()});
            if let Some(effort) = render.effort {
                body["reasoning_effort"] = json!(effort.name());
            }
        }
        if let Some(min_p) = args.sampling.min_p {
            body["min_p"] = json!(min_p);
        }
        if args.sampling.top_k > 0 {
            body["top_k"] = json!(args.sampling.top_k);
        }
        read(&self.post(&body)?).with_context(|| format!("the reply of {}", self.url))
    }

    fn post(&self, body: &Value) -> Result<Value> {
        let mut pause = PAUSE;
        for retry in 0.. {
            let mut request = self.agent.post(&self.url).content_type("application/json");
            if let Some(key) = &self.key {
                request = request.header("Authorization", format!("Bearer {key}"));
            }
            let mut reply = request
                .send(body.to_string())
                .with_context(|| format!("cannot ask {}", self.url))?;
            let status = reply.status().as_u16();
            let text = reply
                .body_mut()
                .with_config()
                .limit(REPLY)
                .read_to_string()
                .with_context(|| format!("cannot read the reply of {}", self.url))?;
            if matches!(status, 429 | 503) && retry < RETRIES {
                thread::sleep(pause);
                pause *= 2;
                continue;
            }
            if status != 200 {
                let start: String = text.chars().take(500).collect();
                bail!("{} answered with status {status}: {start}", self.url);
            }
            return serde_json::from_str(&text)
                .with_context(|| format!("{} answered with no JSON", self.url));
        }
        unreachable!("the last retry returns")
    }
}

/// The parts of a completion that count.
fn read(reply: &Value) -> Result<Answered> {
    let choice = &reply["choices"][0];
    let message = &choice["message"];
    ensure!(
        message.is_object(),
        "`choices[0].message` is {message}, expected an object"
    );
    let text = |name: &str| message[name].as_str().map(str::to_owned);
    Ok(Answered {
        content: text("content").unwrap_or_default(),
        reasoning: text("reasoning_content").or_else(|| text("reasoning")),
        complete: choice["finish_reason"] != "length",
        tokens: reply["usage"]["completion_tokens"].as_u64().unwrap_or(0) as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_is_read() {
        let reply = json!({
            "choices": [{"message": {"content": "4", "reasoning_content": "2 + 2"}, "finish_reason": "length"}],
            "usage": {"completion_tokens": 9},
        });
        let answered = read(&reply).unwrap();
        assert_eq!(
            (
                answered.content.as_str(),
                answered.complete,
                answered.tokens
            ),
            ("4", false, 9)
        );
        assert_eq!(answered.reasoning.as_deref(), Some("2 + 2"));
        let error = read(&json!({"choices": []})).unwrap_err().to_string();
        assert!(error.contains("message"), "{error}");
    }
}
