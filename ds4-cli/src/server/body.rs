//! The body of a request: received within limits of size and time, and read as JSON within a limit of memory.

use std::time::Duration;

use axum::extract::Request;
use axum::http::header;
use futures_util::StreamExt;
use serde_json::Value;

use super::error::ApiError;
use super::params::Body;
use super::state::Shared;

/// A client that sends no more of a body for so long is gone.
const PIECE: Duration = Duration::from_secs(10);
/// The longest that a body may take.
const WHOLE_BODY: Duration = Duration::from_secs(60);
/// Most values in a body: the ids of the longest context, and room for everything else. A value takes two bytes as text, and
/// 72 and more when it is read.
const MOST_VALUES: usize = (1 << 20) + (1 << 16);

/// What `work` makes of the body, a JSON object of no more than the allowed size.
pub(crate) async fn with_body<T: Send + 'static>(
    app: &Shared,
    request: Request,
    work: impl FnOnce(&Shared, Body) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let most = (app.args.max_body_mb as usize) << 20;
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|l| l.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(ApiError::TooLarge(most));
    }
    // What is not said counts as the most it can be.
    let held = app.hold(length.unwrap_or(most)).await?;
    let body = receive(request.into_body(), length.unwrap_or(0), most);
    let bytes = tokio::time::timeout(WHOLE_BODY, body)
        .await
        .map_err(|_| ApiError::Slow)??;
    app.read(move |app| {
        let body = object(&bytes)?;
        drop(bytes);
        let done = work(app, body);
        drop(held);
        done
    })
    .await
}

/// All of a body, of at most `most` bytes; probably `length`.
async fn receive(body: axum::body::Body, length: usize, most: usize) -> Result<Vec<u8>, ApiError> {
    let mut stream = body.into_data_stream();
    // Room that is never written to is no memory.
    let mut bytes = Vec::with_capacity(length);
    while let Some(piece) = tokio::time::timeout(PIECE, stream.next())
        .await
        .map_err(|_| ApiError::Slow)?
    {
        let piece = piece.map_err(|_| ApiError::Slow)?;
        if bytes.len() + piece.len() > most {
            return Err(ApiError::TooLarge(most));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn object(bytes: &[u8]) -> Result<Body, ApiError> {
    let invalid = |what: String| ApiError::Invalid {
        message: format!("invalid JSON request: {what}"),
        param: None,
    };
    if values(bytes) > MOST_VALUES {
        let what = format!("it has more than {MOST_VALUES} values");
        return Err(invalid(what));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(invalid("expected an object".to_owned())),
        Err(error) => Err(invalid(error.to_string())),
    }
}

/// How many values and names are in `json`, at most.
fn values(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (0, false, false);
    for &byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' => in_text = !in_text,
            b'\\' => is_escaped = in_text,
            b',' | b':' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (json, count) in [
            (r#"{"a": [1, 2, 3]}"#, 5),
            (r#"{"a": "[1, 2, {:"}"#, 2),
            (r#"{"a": "\", [[["}"#, 2),
            (r#"{"a": "\\", "b": []}"#, 5),
            ("[[[", 3),
            ("", 0),
        ] {
            assert_eq!(values(json.as_bytes()), count, "{json}");
        }
    }
}
