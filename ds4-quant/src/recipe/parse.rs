//! From TOML to rules; every mistake has its line.

use ds4_gguf::TensorType;
use globset::Glob;
use serde::Deserialize;
use toml::Spanned;

use super::{Recipe, Role, Rule, Want};

/// Why a recipe cannot be used. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum RecipeError {
    /// No recipe has this name.
    #[error("no recipe is called `{name}`; there are {}", Recipe::NAMES.join(", "))]
    Name { name: Box<str> },

    /// Not TOML, an unknown key, a value of another kind, or a rule without a type.
    #[error("recipe, line {line}: {message}")]
    Syntax { line: usize, message: Box<str> },

    /// A `tensor` that is no glob.
    #[error("recipe, line {line}: `{glob}` is no glob: {reason}")]
    Glob {
        line: usize,
        glob: Box<str>,
        reason: Box<str>,
    },

    /// A `role` that no tensor has.
    #[error("recipe, line {line}: no role is called `{role}`; there are {}", Role::ALL.map(Role::name).join(", "))]
    Role { line: usize, role: Box<str> },

    /// `layers` that are none.
    #[error("recipe, line {line}: {message}")]
    Layers { line: usize, message: Box<str> },

    /// A `type` that is no type.
    #[error("recipe, line {line}: no tensor type is called `{ty}`")]
    Type { line: usize, ty: Box<str> },

    /// A `type` that can be read but not written.
    #[error("recipe, line {line}: {ty} cannot be encoded")]
    NoEncoder { line: usize, ty: TensorType },

    /// A `base` that no recipe is.
    #[error("recipe, line {line}: no recipe is called `{name}`; there are {}", Recipe::NAMES.join(", "))]
    Base { line: usize, name: Box<str> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    base: Option<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    tensor: Option<Spanned<String>>,
    role: Option<Spanned<String>>,
    layers: Option<Spanned<String>>,
    from: Option<Vec<Spanned<String>>>,
    #[serde(rename = "type")]
    ty: Spanned<String>,
}

/// The recipe that is built on, and the rules that come before its rules.
pub(super) fn rules(text: &str) -> Result<(Option<Recipe>, Vec<Rule>), RecipeError> {
    let line = |at: usize| {
        1 + text.as_bytes()[..at.min(text.len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
    };
    let file: File = toml::from_str(text).map_err(|error| RecipeError::Syntax {
        line: line(error.span().map_or(0, |span| span.start)),
        message: error.message().trim().into(),
    })?;
    let base = file
        .base
        .map(|name| {
            Recipe::named(name.get_ref()).map_err(|_| RecipeError::Base {
                line: line(name.span().start),
                name: name.get_ref().as_str().into(),
            })
        })
        .transpose()?;
    let rules = file
        .rule
        .into_iter()
        .map(|entry| rule(entry, &line))
        .collect::<Result<_, _>>()?;
    Ok((base, rules))
}

fn rule(entry: Entry, line: &impl Fn(usize) -> usize) -> Result<Rule, RecipeError> {
    let at = |value: &Spanned<String>| line(value.span().start);
    let tensor = entry.tensor.map(|glob| {
        Glob::new(glob.get_ref())
            .map(|compiled| compiled.compile_matcher())
            .map_err(|error| RecipeError::Glob {
                line: at(&glob),
                glob: glob.get_ref().as_str().into(),
                reason: error.kind().to_string().into(),
            })
    });
    let role = entry.role.map(|role| {
        Role::from_name(role.get_ref()).ok_or_else(|| RecipeError::Role {
            line: at(&role),
            role: role.get_ref().as_str().into(),
        })
    });
    let layers = entry.layers.map(|layers| {
        layers
            .get_ref()
            .parse()
            .map_err(|message: String| RecipeError::Layers {
                line: at(&layers),
                message: message.into(),
            })
    });
    let from = entry.from.map(|types| {
        types
            .iter()
            .map(|ty| named_type(ty.get_ref(), at(ty)))
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(Rule {
        from: from.transpose()?,
        tensor: tensor.transpose()?,
        role: role.transpose()?,
        layers: layers.transpose()?,
        want: want(entry.ty.get_ref(), at(&entry.ty))?,
    })
}

fn named_type(name: &str, line: usize) -> Result<TensorType, RecipeError> {
    name.parse().map_err(|_| RecipeError::Type {
        line,
        ty: name.into(),
    })
}

fn want(name: &str, line: usize) -> Result<Want, RecipeError> {
    if name == "keep" {
        return Ok(Want::Keep);
    }
    let ty = named_type(name, line)?;
    if crate::encode::encoder(ty).is_none() {
        return Err(RecipeError::NoEncoder { line, ty });
    }
    Ok(Want::Type(ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_names_its_line() {
        for (text, line, words) in [
            ("[[rule]\n", 1, ""),
            ("\nbase = 3\n", 2, "string"),
            ("bass = \"native\"\n", 1, "bass"),
            ("[[rule]]\ntype = \"Q8_0\"\ntensors = \"x\"\n", 3, "tensors"),
            ("\n[[rule]]\nrole = \"output\"\n", 2, "type"),
            ("[[rule]]\ntype = \"Q8_0\"\ntensor = \"a{b\"\n", 3, "`a{b`"),
            (
                "[[rule]]\nrole = \"experts\"\ntype = \"Q8_0\"\n",
                2,
                "routed experts",
            ),
            ("[[rule]]\nlayers = \"9-2\"\ntype = \"Q8_0\"\n", 2, "9-2"),
            ("[[rule]]\ntype = \"Q9_0\"\n", 2, "`Q9_0`"),
            ("[[rule]]\ntype = \"F16\"\nfrom = [\n\"Q9_0\"]", 4, "`Q9_0`"),
            ("[[rule]]\n\ntype = \"Q8_K\"\n", 3, "Q8_K"),
            ("\n\nbase = \"mine\"\n", 3, "native, strix"),
        ] {
            let error = rules(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("recipe, line {line}: ")) && error.contains(words),
                "{text:?}: {error}"
            );
        }
        let error = Recipe::named("mine").unwrap_err().to_string();
        assert!(error.contains("`mine`") && error.contains("q4k"), "{error}");
    }
}
