//! How tokens are drawn: the flags of `ds4`, `ds4-agent` and `ds4-eval`.

use std::time::{SystemTime, UNIX_EPOCH};

use ds4_model::Sampler;

use crate::running::{share, temperature};

/// Least share of the likeliest token's probability, where nobody says.
const MIN_P: f32 = 0.05;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Sampling {
    /// 0 takes the likeliest token, 1 draws as the model says; up to 100 [default: 1, of ds4-eval 0].
    #[arg(long, value_name = "F", allow_negative_numbers = true, value_parser = temperature)]
    temp: Option<f32>,
    /// Only the likeliest tokens that together have this probability; 1 is all.
    #[arg(long, value_name = "F", allow_negative_numbers = true, default_value_t = 1.0, value_parser = share)]
    pub(crate) top_p: f32,
    /// Only tokens with at least this share of the likeliest one's probability; 0 is all [default: 0.05].
    #[arg(long, value_name = "F", allow_negative_numbers = true, value_parser = share)]
    pub(crate) min_p: Option<f32>,
    /// Only so many of the likeliest tokens, up to 1024; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) top_k: u16,
    /// The same seed draws the same answer; 0 is another one every time.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Sampling {
    /// The temperature; `default` where nobody says.
    pub(crate) fn temperature(&self, default: f32) -> f32 {
        self.temp.unwrap_or(default)
    }

    /// The seed: that of the command line, or the time.
    pub(crate) fn seed(&self) -> u64 {
        match self.seed {
            0 => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(1, |d| d.as_nanos() as u64),
            seed => seed,
        }
    }

    /// How tokens of a vocabulary of `vocab_len` are drawn, from `seed` on, at `temperature` where the command line has none.
    pub(crate) fn sampler(&self, temperature: f32, seed: u64, vocab_len: usize) -> Sampler {
        Sampler {
            temperature: self.temperature(temperature),
            top_p: self.top_p,
            min_p: self.min_p.unwrap_or(MIN_P),
            top_k: self.top_k.into(),
            vocab_len,
            ..Sampler::seeded(seed)
        }
    }
}
