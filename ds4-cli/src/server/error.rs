//! Errors on the wire: one type, two shapes.

use std::any::Any;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Whose shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{"error": {"message", "type", "param", "code"}}`
    OpenAi,
    /// `{"type": "error", "error": {"type", "message"}}`
    Anthropic,
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{message}")]
    Invalid {
        message: String,
        param: Option<String>,
    },
    #[error("`{param}` is not supported{why}")]
    Unsupported { param: String, why: String },
    #[error("Prompt has {tokens} tokens, but the configured context size is {context} tokens")]
    Context {
        tokens: usize,
        context: usize,
        param: &'static str,
    },
    #[error(
        "Prompt has {bytes} bytes, more than fit the configured context size of {context} tokens"
    )]
    Bytes {
        bytes: usize,
        context: usize,
        param: &'static str,
    },
    #[error("the API key is missing or wrong")]
    Key,
    #[error("{0}")]
    Foreign(String),
    #[error("{0}")]
    NotFound(String),
    #[error("the method is not allowed here")]
    Method,
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the header is larger than {0} bytes")]
    Header(usize),
    #[error("the body does not arrive")]
    Slow,
    #[error("{0}")]
    Busy(String),
    #[error("{0} connections are open, which is the limit; try again later")]
    Crowded(u32),
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error("{0}")]
    Failed(String),
}

impl ApiError {
    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
            param: Some(param.to_owned()),
        }
    }

    /// What a panic is to a client. The log has more.
    pub(crate) fn bug(panic: &(dyn Any + Send)) -> Self {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("of an unknown kind");
        super::log(format_args!("a request met a bug, a panic: {what}"));
        Self::Failed("a bug in the server; its log says more".to_owned())
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Invalid { .. }
            | Self::Unsupported { .. }
            | Self::Context { .. }
            | Self::Bytes { .. } => StatusCode::BAD_REQUEST,
            Self::Key => StatusCode::UNAUTHORIZED,
            Self::Foreign(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Header(_) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::ShuttingDown | Self::Crowded(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn body(&self, shape: Shape) -> Value {
        let message = self.to_string();
        let kind = match (self, shape) {
            (Self::Key, _) => "authentication_error",
            (Self::Foreign(_), _) => "permission_error",
            (Self::NotFound(_), Shape::Anthropic) => "not_found_error",
            (Self::TooLarge(_), Shape::Anthropic) => "request_too_large",
            (Self::Busy(_), _) => "rate_limit_error",
            (Self::ShuttingDown | Self::Crowded(_), Shape::Anthropic) => "overloaded_error",
            (Self::Failed(_), Shape::Anthropic) => "api_error",
            (Self::ShuttingDown | Self::Crowded(_) | Self::Failed(_), _) => "server_error",
            _ => "invalid_request_error",
        };
        if shape == Shape::Anthropic {
            return json!({ "type": "error", "error": { "type": kind, "message": message } });
        }
        let param = match self {
            Self::Invalid { param, .. } => param.clone(),
            Self::Unsupported { param, .. } => Some(param.clone()),
            Self::Context { param, .. } | Self::Bytes { param, .. } => Some((*param).to_owned()),
            _ => None,
        };
        let code = match self {
            Self::Unsupported { .. } => Some("unsupported_parameter"),
            Self::Context { .. } | Self::Bytes { .. } => Some("context_length_exceeded"),
            Self::Key => Some("invalid_api_key"),
            Self::NotFound(_) => Some("not_found"),
            Self::Busy(_) => Some("rate_limit_exceeded"),
            _ => None,
        };
        let mut error = json!({ "message": message, "type": kind, "param": param, "code": code });
        if let Self::Context {
            tokens, context, ..
        } = self
        {
            error["n_prompt_tokens"] = json!(tokens);
            error["n_ctx"] = json!(context);
        }
        json!({ "error": error })
    }

    pub(crate) fn response(&self, shape: Shape) -> Response {
        (self.status(), Json(self.body(shape))).into_response()
    }
}
