//! What `config.json` says of rotary angles: how many channels turn, two bases, and the scaling of the second.
//!
//! | | published | transformers |
//! |---|---|---|
//! | channels | `qk_rope_head_dim` | `partial_rotary_factor` of `head_dim` |
//! | base of layers without compression | `rope_theta` | `rope_parameters.main.rope_theta` |
//! | base of layers with compression | `compress_rope_theta` | `rope_parameters.compress.rope_theta` |
//! | scaling of these | `rope_scaling` | `rope_parameters.compress`, or `rope_parameters` itself |
//!
//! A scaling is of kind `default`, which is none, or `yarn`; where no kind is named there is none. YaRN's magnitude is 1 in
//! this model, whatever its factor.
//! Source: huggingface/transformers:src/transformers/models/deepseek_v4/configuration_deepseek_v4.py.

use serde_json::{Value as Json, json};

use super::settings::Settings;

/// The rotary tables.
#[derive(Debug)]
pub(super) struct Rotary {
    /// Channels of a head that turn.
    pub(super) dim: u32,
    /// Base of layers without compression.
    pub(super) base: f64,
    /// Base of layers with compression.
    pub(super) compress_base: f64,
    /// Scaling of layers with compression.
    pub(super) yarn: Option<Yarn>,
}

/// YaRN.
#[derive(Debug)]
pub(super) struct Yarn {
    pub(super) factor: f64,
    /// Tokens of the original context.
    pub(super) original: u32,
    pub(super) fast: f64,
    pub(super) slow: f64,
}

impl Rotary {
    /// Read the tables; problems are noted in `settings`.
    pub(super) fn of(settings: &mut Settings<'_>, head_dim: u32) -> Self {
        let main = "rope_parameters.main.rope_type";
        let kind = settings.at(main);
        if kind.is_some_and(|kind| kind != "default") {
            settings.problem(main, kind, "default");
        }
        Self {
            dim: dim(settings, head_dim),
            base: base(settings, "main", "rope_theta", 10_000.0),
            compress_base: base(settings, "compress", "compress_rope_theta", 160_000.0),
            yarn: yarn(settings),
        }
    }
}

/// The channels that turn: their number, or their share of the head.
fn dim(settings: &mut Settings<'_>, head_dim: u32) -> u32 {
    const SHARES: [&str; 4] = [
        "partial_rotary_factor",
        "rope_parameters.main.partial_rotary_factor",
        "rope_parameters.compress.partial_rotary_factor",
        "rope_parameters.partial_rotary_factor",
    ];
    let given = settings.at("qk_rope_head_dim");
    let mut dim = given.map(|_| settings.size("qk_rope_head_dim"));
    for field in SHARES {
        let Some(found) = settings.at(field) else {
            continue;
        };
        let channels = settings.number(field, None) * f64::from(head_dim);
        // What is wrong with the head has been said.
        if head_dim == 0 {
            continue;
        }
        // A share is a quotient that was rounded, of a double or of a few printed digits.
        if (channels - channels.round()).abs() > 1e-3 {
            let expected = format!("a share of {head_dim} channels that is a whole number");
            settings.problem(field, Some(found), &expected);
        }
        let channels = channels.round() as u32;
        if *dim.get_or_insert(channels) != channels {
            let expected = format!("{} of {head_dim} channels", dim.unwrap_or(0));
            settings.problem(field, Some(found), &expected);
        }
    }
    dim.unwrap_or_else(|| settings.size("qk_rope_head_dim"))
}

/// A base: a field of its own, or one of `rope_parameters`.
fn base(settings: &mut Settings<'_>, which: &str, field: &str, usual: f64) -> f64 {
    let nested = format!("rope_parameters.{which}.rope_theta");
    let inner = settings.at(&nested);
    let base = match inner {
        Some(_) => settings.number(&nested, None),
        None => usual,
    };
    let outer = settings.number(field, Some(base));
    if inner.is_some() && outer != base {
        settings.problem(&nested, inner, &format!("{outer}, as {field} is"));
    }
    outer
}

/// The scaling.
fn yarn(settings: &mut Settings<'_>) -> Option<Yarn> {
    const PLACES: [&str; 3] = [
        "rope_scaling",
        "rope_parameters.compress",
        "rope_parameters",
    ];
    let place = *PLACES.iter().find(|place| settings.at(place).is_some())?;
    let field = |name: &str| format!("{place}.{name}");
    let whole = settings.at(place);
    if !whole.is_some_and(Json::is_object) {
        settings.problem(place, whole, "an object");
        return None;
    }
    let [new, old] = ["rope_type", "type"].map(|name| settings.at(&field(name)));
    if let (Some(new), Some(old)) = (new, old)
        && new != old
    {
        settings.problem(
            &field("type"),
            Some(old),
            &format!("{new}, as rope_type is"),
        );
    }
    let kind = new.or(old);
    match kind.map(Json::as_str) {
        Some(Some("yarn")) => {}
        Some(Some("default")) => return None,
        // Numbers of a scaling that nobody asked for.
        None if settings.at(&field("factor")).is_none() => return None,
        _ => {
            settings.problem(&field("rope_type"), kind, "default or yarn");
            return None;
        }
    }
    for (name, expected) in [("attention_factor", json!(1.0)), ("truncate", json!(true))] {
        let found = settings.at(&field(name));
        let same = |found: &Json| match expected.as_f64() {
            Some(expected) => found.as_f64() == Some(expected),
            None => *found == expected,
        };
        if found.is_some_and(|found| !same(found)) {
            settings.problem(&field(name), found, &expected.to_string());
        }
    }
    Some(Yarn {
        factor: settings.number(&field("factor"), None),
        original: settings.size(&field("original_max_position_embeddings")),
        fast: settings.number(&field("beta_fast"), Some(32.0)),
        slow: settings.number(&field("beta_slow"), Some(1.0)),
    })
}
