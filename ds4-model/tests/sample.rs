//! The sampler: what each cut keeps, frequencies, and what broken logits do.

use ds4_model::{Sampler, Token};
use proptest::prelude::*;

/// Log-probabilities as logits.
fn logits(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln()).collect()
}

/// How often each token comes in `n` draws.
fn counts(sampler: &Sampler, logits: &[f32], n: usize) -> Vec<usize> {
    let mut sampler = sampler.clone();
    let mut counts = vec![0; logits.len()];
    for _ in 0..n {
        counts[sampler.sample(logits) as usize] += 1;
    }
    counts
}

fn warm() -> Sampler {
    Sampler {
        temperature: 1.0,
        ..Sampler::seeded(11)
    }
}

#[test]
fn zero_temperature_takes_the_greatest_and_the_lowest_id_of_equals() {
    let mut greedy = Sampler::default();
    assert_eq!(greedy.sample(&[1.0, 3.0, 3.0, 2.0]), 1);
    assert_eq!(greedy.sample(&[f32::NAN, -1.0, f32::NAN]), 1);
    assert_eq!(greedy.sample(&[f32::NEG_INFINITY, f32::NEG_INFINITY]), 0);
    for temperature in [-1.0, f32::NAN] {
        assert_eq!(
            Sampler {
                temperature,
                ..warm()
            }
            .sample(&[0.0, 9.0, 8.9]),
            1
        );
    }
}

/// 20 000 draws: the standard deviation of a count is at most √(n/4) = 71; five of them are 355.
#[test]
fn tokens_come_as_often_as_the_model_says() {
    let p = [0.5, 0.25, 0.15, 0.1];
    let n = 20_000;
    for (count, p) in counts(&warm(), &logits(&p), n).into_iter().zip(p) {
        assert!(
            (count as f32 - p * n as f32).abs() < 355.0,
            "{count} of {n} at {p}"
        );
    }
    // At temperature 2 weights are square roots: 0.8, 0.2 become 2/3, 1/3.
    let soft = Sampler {
        temperature: 2.0,
        ..warm()
    };
    assert!(
        (counts(&soft, &logits(&[0.8, 0.2]), n)[0] as f32 - n as f32 * 2.0 / 3.0).abs() < 355.0
    );
}

#[test]
fn cuts_keep_what_they_say() {
    let p = logits(&[0.1, 0.4, 0.3, 0.15, 0.05]);
    let kept = |sampler: Sampler| -> Vec<usize> {
        counts(&sampler, &p, 3000)
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(id, _)| id)
            .collect()
    };
    assert_eq!(kept(warm()), [0, 1, 2, 3, 4]);
    assert_eq!(kept(Sampler { top_k: 2, ..warm() }), [1, 2]);
    assert_eq!(
        kept(Sampler {
            top_p: 0.69,
            ..warm()
        }),
        [1, 2]
    );
    assert_eq!(
        kept(Sampler {
            top_p: 0.75,
            ..warm()
        }),
        [1, 2, 3]
    );
    assert_eq!(
        kept(Sampler {
            top_p: 0.0,
            ..warm()
        }),
        [1]
    );
    assert_eq!(
        kept(Sampler {
            min_p: 0.5,
            ..warm()
        }),
        [1, 2]
    );
    assert_eq!(
        kept(Sampler {
            min_p: 1.0,
            ..warm()
        }),
        [1]
    );
    assert_eq!(
        kept(Sampler {
            top_k: 3,
            top_p: 0.5,
            min_p: 0.3,
            ..warm()
        }),
        [1, 2]
    );
    assert_eq!(
        kept(Sampler {
            vocab_len: 2,
            ..warm()
        }),
        [0, 1]
    );
}

/// Recorded once: these are the tokens of every platform, because nothing but integer and basic float arithmetic is used.
#[test]
fn a_seed_draws_the_same_tokens_everywhere() {
    let p: Vec<f32> = (0..50).map(|i| (i * 37 % 50) as f32 * 0.1).collect();
    let draw = |seed| {
        let mut sampler = Sampler {
            temperature: 0.9,
            top_p: 0.95,
            min_p: 0.01,
            ..Sampler::seeded(seed)
        };
        (0..12).map(|_| sampler.sample(&p)).collect::<Vec<Token>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_eq!(draw(42), RECORDED);
}

const RECORDED: [Token; 12] = [16, 4, 4, 27, 48, 31, 31, 4, 24, 31, 24, 9];

#[test]
fn logprobs_are_the_models_own() {
    let p = [0.1, 0.4, 0.3, 0.2];
    let mut sampler = Sampler {
        temperature: 0.3,
        top_k: 1,
        ..warm()
    };
    let sampled = sampler.sample_with_logprobs(&logits(&p), 3);
    let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
    assert!(
        sampled.token == 1 && close(sampled.logprob, 0.4f32.ln()),
        "{sampled:?}"
    );
    let want = [(1, 0.4f32), (2, 0.3), (3, 0.2)];
    assert!(
        sampled
            .top
            .iter()
            .zip(want)
            .all(|(got, want)| got.0 == want.0 && close(got.1, want.1.ln())),
        "{sampled:?}"
    );
    assert_eq!(sampled.top.len(), 3);
    assert_eq!(
        sampler.sample_with_logprobs(&[1.0, f32::NAN], 9).top.len(),
        1
    );
    assert_eq!(Sampler::default().sample_with_logprobs(&[], 2).top, []);
}

#[test]
fn drafts_are_drawn_by_their_probabilities() {
    let mut sampler = warm();
    let n = 20_000;
    let ones = (0..n)
        .filter(|_| sampler.draw(&[0.0, 0.6, f32::NAN, 0.2, -1.0]) == 1)
        .count();
    assert!((ones as f32 - 0.75 * n as f32).abs() < 355.0, "{ones}");
    assert_eq!(sampler.draw(&[]), 0);
}

proptest! {
    #[test]
    fn any_logits_and_settings_draw_a_valid_token(
        bits in prop::collection::vec(any::<u32>(), 0..40),
        temperature in any::<f32>(),
        top_p in any::<f32>(),
        min_p in any::<f32>(),
        top_k in 0usize..50,
        vocab_len in 0usize..50,
    ) {
        let logits: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
        let mut sampler = Sampler { temperature, top_p, min_p, top_k, vocab_len, ..Sampler::seeded(3) };
        let known = &logits[..logits.len().min(vocab_len)];
        for _ in 0..3 {
            let token = sampler.sample(&logits) as usize;
            prop_assert!(token < known.len().max(1));
            prop_assert!(known.iter().all(|l| l.is_nan()) || !known[token].is_nan());
        }
        sampler.sample_with_logprobs(&logits, 5);
    }
}
