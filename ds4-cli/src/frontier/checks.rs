//! Whether what is fast is also right: a question with a known answer, and two ways to the same logits.

use std::io::{self, Write};

use anyhow::{Result, bail};
use ds4_model::measure::hash;
use ds4_model::{Engine, Finish, Logits, Message, NoTap, Sampler, Token};

const QUESTION: &str = "What is 2 + 2?";
const ANSWER: u64 = 4;
/// Most tokens of an answer, and those that a self-check draws.
const MOST: usize = 256;

/// Ask what 2 + 2 is.
pub(super) fn semantic_smoke(engine: &Engine) -> Result<()> {
    let mut session = engine.session()?;
    session.sync(&engine.render(&[Message::user(QUESTION)])?)?;
    let (mut sampler, stops) = (sampler(engine), engine.stops());
    let (mut text, mut ended) = (String::new(), false);
    for piece in session.generate(&mut sampler, &stops).limit(MOST) {
        let piece = piece?;
        text += &piece.text;
        ended |= matches!(piece.finish, Some(Finish::Token(_)));
    }
    if !ended || last_number(&text) != Some(ANSWER) {
        bail!("semantic smoke: `{QUESTION}` was answered with `{text}`, expected {ANSWER}");
    }
    writeln!(io::stderr(), "semantic smoke: `{QUESTION}` → `{text}`")?;
    Ok(())
}

/// The last number of a text: an answer such as "2 + 2 = 4." repeats what was asked.
fn last_number(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .rfind(|digits| !digits.is_empty())?
        .parse()
        .ok()
}

/// Draw tokens one by one, and at powers of two compare the logits with those of reading the same tokens in one go.
pub(super) fn decode_self_check(engine: &Engine) -> Result<()> {
    let prompt = engine.render(&[Message::user(QUESTION)])?;
    let mut session = engine.session()?;
    session.sync(&prompt)?;
    let mut sampler = sampler(engine);
    let steps = MOST.min(engine.context().saturating_sub(prompt.len()));
    let (mut tokens, mut differing) = (prompt, 0);
    for step in 1..=steps {
        let token = sampler.sample(session.logits());
        session.push(token)?;
        tokens.push(token);
        if !step.is_power_of_two() {
            continue;
        }
        let mut at_once = engine.session()?;
        at_once.sync(&tokens)?;
        let (one, other) = (session.logits(), at_once.logits());
        let bits = one
            .iter()
            .zip(other)
            .filter(|(a, b)| a.to_bits() != b.to_bits())
            .count();
        let furthest = one.iter().zip(other).map(|(a, b)| (a - b).abs());
        writeln!(
            io::stderr(),
            "decode self-check: step {step}, {bits} of {} logits differ, by at most {}",
            one.len(),
            furthest.fold(0.0, f32::max)
        )?;
        differing += bits;
    }
    if differing > 0 {
        bail!("decode self-check: {differing} logits depend on how the tokens were read");
    }
    Ok(())
}

/// Read `tokens` one by one after the first `start`, and in one go; what the model would have said at each must be the
/// same, and have the hash `expected`.
pub(super) fn teacher_force(
    engine: &Engine,
    tokens: &[Token],
    start: usize,
    expected: Option<u64>,
) -> Result<()> {
    let mut sampler = sampler(engine);
    let mut session = engine.session()?;
    session.sync(&tokens[..start])?;
    let mut said = vec![sampler.sample(session.logits())];
    for &token in &tokens[start..tokens.len() - 1] {
        session.push(token)?;
        said.push(sampler.sample(session.logits()));
    }
    drop(session);
    let vocab = engine.config().vocab;
    let mut at_once: Vec<Token> = Vec::with_capacity(tokens.len());
    engine
        .session()?
        .run(tokens, Logits::All, &mut NoTap, &mut |rows| {
            at_once.extend(rows.chunks_exact(vocab).map(|row| sampler.sample(row)));
        })?;
    let wanted = &at_once[start - 1..tokens.len() - 1];
    let differing = said.iter().zip(wanted).filter(|(a, b)| a != b).count();
    let agreed = said.iter().zip(&tokens[start..]).filter(|(a, b)| a == b);
    let found = hash(&said);
    writeln!(
        io::stderr(),
        "teacher-force control: {} tokens, {} as the text has them, {differing} differ between the two ways, fnv64 {found:016x}",
        said.len(),
        agreed.count()
    )?;
    if differing > 0 {
        bail!("teacher-force control: {differing} tokens depend on how the text was read");
    }
    match expected {
        Some(expected) if expected != found => {
            bail!("teacher-force control: fnv64 is {found:016x}, expected {expected:016x}")
        }
        _ => Ok(()),
    }
}

fn sampler(engine: &Engine) -> Sampler {
    Sampler {
        vocab_len: engine.tokenizer().vocab_len(),
        ..Sampler::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_an_answer_is_what_counts() {
        assert_eq!(last_number("2 + 2 = 4."), Some(4));
        assert_eq!(last_number("four"), None);
        assert_eq!(last_number("99999999999999999999999"), None);
    }
}
