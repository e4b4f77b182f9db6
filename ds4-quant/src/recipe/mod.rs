//! Recipes: which type each tensor of a model gets.
//!
//! A recipe is a list of rules in TOML. The first rule that matches a tensor decides; a tensor that none matches keeps
//! its type.
//!
//! ```toml
//! base = "native"                          # optional: the rules of a named recipe come after these
//!
//! [[rule]]
//! layers = "37-42"                         # optional; also "7", "40-", "first 3", "last 6", and lists of them
//! role = "routed experts"                  # optional: a `Role`
//! tensor = "blk.*.ffn_{gate,up}_exps.*"    # optional: a glob on the whole name
//! from = ["MXFP4", "Q8_0"]                 # optional: types that the tensor may have now
//! type = "Q4_K"                            # ggml's name of a type, or "keep"
//! ```
//! What a rule asks for is not always possible. In this order:
//!
//! 1. integer tables, and weights that no codec decodes, stay as they are ([`Because::NotWeights`]);
//! 2. a vector (one row) becomes F32, unless the rule says `keep`: norms, biases and scales are added or multiplied
//!    as floats everywhere ([`Because::Vector`]);
//! 3. a row that is not a whole number of blocks gets a type of smaller blocks: types of 256 weights below 4.3 bits
//!    become IQ4_NL, others Q8_0, and where 32 do not divide the row either, F16 ([`Because::Row`]).

mod layers;
mod parse;
mod role;

use ds4_gguf::{Dims, TensorType};
use globset::GlobMatcher;

use layers::Layers;

pub use parse::RecipeError;
pub use role::Role;

/// The named recipes and their rules.
const NAMED: [(&str, &str); 6] = [
    ("native", include_str!("native.toml")),
    ("strix", include_str!("strix.toml")),
    ("q4k", include_str!("q4k.toml")),
    ("q8", include_str!("q8.toml")),
    ("f16", include_str!("f16.toml")),
    ("q2k-down", include_str!("q2k-down.toml")),
];

/// Which type each tensor of a model gets.
///
/// ```
/// use ds4_gguf::{Dims, TensorType};
/// use ds4_quant::recipe::Recipe;
///
/// let recipe = Recipe::from_toml(
///     r#"
///     base = "native"
///     [[rule]]
///     layers = "last 6"
///     role = "routed experts"
///     type = "Q4_K"
///     "#,
/// )?;
/// let dims = Dims::new(&[4096, 2048, 256]).expect("a shape");
/// let decide = |name| recipe.decide(name, &dims, TensorType::Mxfp4, Some(43)).ty;
/// assert_eq!(decide("blk.3.ffn_gate_exps.weight"), TensorType::Iq2Xxs);
/// assert_eq!(decide("blk.40.ffn_gate_exps.weight"), TensorType::Q4K);
/// # Ok::<(), ds4_quant::recipe::RecipeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recipe {
    name: Box<str>,
    rules: Vec<Rule>,
}

/// One rule; what is absent matches everything.
#[derive(Clone, Debug)]
struct Rule {
    tensor: Option<GlobMatcher>,
    role: Option<Role>,
    layers: Option<Layers>,
    from: Option<Vec<TensorType>>,
    want: Want,
}

/// What a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Keep,
    Type(TensorType),
}

/// The type that a tensor gets, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The type.
    pub ty: TensorType,
    /// The reason.
    pub because: Because,
}

/// Why a tensor gets its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Because {
    /// A rule says so.
    Rule,
    /// No rule matches: it keeps its type.
    NoRule,
    /// An integer table, or a type that no codec decodes: it keeps its type.
    NotWeights,
    /// A vector: F32, whatever the rule says.
    Vector,
    /// Its row is not a whole number of blocks of the type that the rule asks for.
    Row {
        /// That type.
        wanted: TensorType,
    },
}

impl Recipe {
    /// The names that [`Recipe::named`] knows.
    pub const NAMES: [&str; NAMED.len()] = {
        let mut names = [""; NAMED.len()];
        let mut i = 0;
        while i < NAMED.len() {
            names[i] = NAMED[i].0;
            i += 1;
        }
        names
    };

    /// A named recipe:
    ///
    /// | name | gate, up | down | attention, shared experts, output | embedding, router, compressors, hyper-connections |
    /// |---|---|---|---|---|
    /// | `native` | IQ2_XXS | Q2_K | Q8_0 | F16 |
    /// | `strix` | ROCmFP2 (two-scale) | ROCmFP3 | ROCmFP4 | Q6_K, F32, ROCmFP4, F32 |
    /// | `q4k` | Q4_K | Q4_K | Q8_0 | F16 |
    /// | `q8` | Q8_0 | Q8_0 | Q8_0 | Q8_0, the rest F16 |
    /// | `f16` | F16 | F16 | F16 | F16 |
    /// | `q2k-down` | as it is | Q2_K where MXFP4 or IQ3_XXS | as it is | as it is |
    ///
    /// # Errors
    /// [`RecipeError::Name`] for another name.
    pub fn named(name: &str) -> Result<Self, RecipeError> {
        let (name, text) = NAMED
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| RecipeError::Name { name: name.into() })?;
        let mut recipe = Self::from_toml(text)?;
        recipe.name = (*name).into();
        Ok(recipe)
    }

    /// A recipe in TOML: see the [module](self).
    ///
    /// # Errors
    /// See [`RecipeError`]; all but [`RecipeError::Name`] name a line.
    pub fn from_toml(text: &str) -> Result<Self, RecipeError> {
        let (base, mut rules) = parse::rules(text)?;
        if let Some(base) = base {
            rules.extend(base.rules);
        }
        Ok(Self {
            name: "custom".into(),
            rules,
        })
    }

    /// These rules, and those of `other` for tensors that none of them matches. It has the name of `other`.
    #[must_use]
    pub fn before(mut self, other: &Self) -> Self {
        self.rules.extend_from_slice(&other.rules);
        self.name.clone_from(&other.name);
        self
    }

    /// Its name: one of [`Recipe::NAMES`], or `custom`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type that a tensor gets.
    ///
    /// * `source`: the type it has now; F32 for weights that come from elsewhere
    /// * `layers`: layers of the model, where known: what lies beyond has the role [`Role::Other`]
    pub fn decide(
        &self,
        name: &str,
        dims: &Dims,
        source: TensorType,
        layers: Option<u64>,
    ) -> Decision {
        let decided = |ty, because| Decision { ty, because };
        if crate::codec(source).is_none() {
            return decided(source, Because::NotWeights);
        }
        let Some(rule) = self
            .rules
            .iter()
            .find(|rule| rule.matches(name, source, layers))
        else {
            return decided(source, Because::NoRule);
        };
        let Want::Type(wanted) = rule.want else {
            return decided(source, Because::Rule);
        };
        if dims.rows() == 1 {
            return decided(TensorType::F32, Because::Vector);
        }
        let fits = |ty: TensorType| dims.cols().is_multiple_of(ty.block_len() as u64);
        if fits(wanted) {
            return decided(wanted, Because::Rule);
        }
        let smaller = smaller_blocks(wanted);
        let ty = if fits(smaller) {
            smaller
        } else {
            TensorType::F16
        };
        decided(ty, Because::Row { wanted })
    }
}

impl Rule {
    fn matches(&self, name: &str, source: TensorType, layers: Option<u64>) -> bool {
        self.role.is_none_or(|role| role == Role::of(name, layers))
            && self.from.as_ref().is_none_or(|from| from.contains(&source))
            && self.tensor.as_ref().is_none_or(|glob| glob.is_match(name))
            && self.layers.as_ref().is_none_or(|wanted| {
                layers::layer_of(name).is_some_and(|layer| wanted.contain(layer, layers))
            })
    }
}

/// The type of smaller blocks that stands in for `ty` without losing more.
fn smaller_blocks(ty: TensorType) -> TensorType {
    let bits = 8.0 * ty.block_bytes() as f64 / ty.block_len() as f64;
    if ty.block_len() == 256 && bits < 4.3 {
        TensorType::Iq4Nl
    } else {
        TensorType::Q8_0
    }
}

/// Whether rows of `ty` cannot be encoded without knowing which columns matter.
pub fn demands_importance(ty: TensorType) -> bool {
    let Some(codec) = crate::codec(ty) else {
        return false;
    };
    let mut block = vec![0; ty.block_bytes()];
    let encoded = codec.encode(&vec![0.0; ty.block_len()], None, &mut block);
    matches!(encoded, Err(crate::Error::MissingImportance { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(ne: &[u64]) -> Dims {
        Dims::new(ne).unwrap()
    }

    #[test]
    fn the_named_recipes_give_the_types_of_their_table() {
        use TensorType::*;
        let names = [
            "blk.3.ffn_gate_exps.weight",
            "blk.3.ffn_up_exps.weight",
            "blk.3.ffn_down_exps.weight",
            "blk.3.attn_q_a.weight",
            "blk.3.attn_kv.weight",
            "blk.3.ffn_up_shexp.weight",
            "output.weight",
            "token_embd.weight",
            "blk.3.ffn_gate_inp.weight",
            "blk.4.attn_compressor_kv.weight",
            "blk.4.attn_compress_ape.weight",
            "blk.4.indexer.attn_q_b.weight",
            "output_hc_fn.weight",
            "hc_head_fn.weight",
        ];
        for (recipe, want) in [
            (
                "native",
                [
                    Iq2Xxs, Iq2Xxs, Q2K, Q8_0, Q8_0, Q8_0, Q8_0, F16, F16, F16, F16, F16, F16, F16,
                ],
            ),
            (
                "strix",
                [
                    RocmFp2TwoScale,
                    RocmFp2TwoScale,
                    RocmFp3,
                    RocmFp4Fast,
                    RocmFp4,
                    RocmFp4Fast,
                    RocmFp4Fast,
                    Q6K,
                    F32,
                    RocmFp4Fast,
                    F32,
                    RocmFp4Fast,
                    F32,
                    F32,
                ],
            ),
            (
                "q4k",
                [
                    Q4K, Q4K, Q4K, Q8_0, Q8_0, Q8_0, Q8_0, F16, F16, F16, F16, F16, F16, F16,
                ],
            ),
            (
                "q8",
                [
                    Q8_0, Q8_0, Q8_0, Q8_0, Q8_0, Q8_0, Q8_0, Q8_0, F16, F16, F16, F16, F16, F16,
                ],
            ),
            ("f16", [F16; 14]),
        ] {
            let recipe = Recipe::named(recipe).unwrap();
            for (name, want) in names.iter().zip(want) {
                let got = recipe.decide(name, &dims(&[512, 64]), F32, Some(43));
                assert_eq!(got.ty, want, "{}: {name}", recipe.name());
                assert_eq!(got.because, Because::Rule, "{}: {name}", recipe.name());
            }
            let norm = recipe.decide("blk.3.attn_norm.weight", &dims(&[512]), Bf16, Some(43));
            assert_eq!((norm.ty, norm.because), (F32, Because::Vector));
            let table = recipe.decide("blk.0.ffn_gate_tid2eid.weight", &dims(&[6, 9]), I32, None);
            assert_eq!((table.ty, table.because), (I32, Because::NotWeights));
        }
    }

    #[test]
    fn a_rule_may_ask_what_the_tensor_is_now() {
        use TensorType::*;
        let recipe = Recipe::named("q2k-down").unwrap();
        for (name, from, to) in [
            ("blk.3.ffn_down_exps.weight", Mxfp4, Q2K),
            ("blk.3.ffn_down_exps.weight", Iq3Xxs, Q2K),
            ("blk.3.ffn_down_exps.weight", Q4K, Q4K),
            ("blk.3.ffn_up_exps.weight", Mxfp4, Mxfp4),
            ("blk.43.ffn_down_exps.weight", Mxfp4, Mxfp4),
        ] {
            let decided = recipe.decide(name, &dims(&[512, 64]), from, Some(43));
            assert_eq!(decided.ty, to, "{name} of {from}");
        }
    }

    #[test]
    fn layers_beyond_the_model_are_left_alone() {
        let name = "blk.43.ffn_down_exps.weight";
        for recipe in ["native", "strix"] {
            let recipe = Recipe::named(recipe).unwrap();
            let decide = |layers| recipe.decide(name, &dims(&[512, 8]), TensorType::Mxfp4, layers);
            assert_eq!(decide(Some(43)).ty, TensorType::Mxfp4);
            assert_ne!(decide(Some(44)).ty, TensorType::Mxfp4);
        }
    }

    #[test]
    fn rows_of_other_lengths_fall_back_and_say_so() {
        use TensorType::*;
        for (ask, cols, want) in [
            ("Q2_K", 512, Q2K),
            ("Q2_K", 288, Iq4Nl),
            ("IQ2_XXS", 96, Iq4Nl),
            ("IQ4_XS", 96, Iq4Nl),
            ("Q4_K", 96, Q8_0),
            ("Q6_K", 32, Q8_0),
            ("Q6_K", 48, F16),
            ("NVFP4", 32, Q8_0),
            ("Q8_0", 4, F16),
            ("F16", 3, F16),
        ] {
            let recipe = Recipe::from_toml(&format!("[[rule]]\ntype = \"{ask}\"")).unwrap();
            let got = recipe.decide("x", &dims(&[cols, 2]), F32, None);
            let wanted: TensorType = ask.parse().unwrap();
            let because = if want == wanted {
                Because::Rule
            } else {
                Because::Row { wanted }
            };
            assert_eq!((got.ty, got.because), (want, because), "{ask} of {cols}");
        }
    }

    #[test]
    fn the_first_rule_wins_and_a_base_comes_last() {
        let recipe = Recipe::from_toml(
            r#"
            base = "f16"
            [[rule]]
            tensor = "blk.*.ffn_{gate,up}_exps.weight"
            layers = "2-3"
            type = "Q4_K"
            [[rule]]
            role = "routed experts"
            layers = "first 3"
            type = "keep"
            "#,
        )
        .unwrap();
        let decide = |name: &str| {
            recipe
                .decide(name, &dims(&[512, 2]), TensorType::Bf16, None)
                .ty
        };
        assert_eq!(decide("blk.2.ffn_up_exps.weight"), TensorType::Q4K);
        assert_eq!(decide("blk.2.ffn_down_exps.weight"), TensorType::Bf16);
        assert_eq!(decide("blk.3.ffn_down_exps.weight"), TensorType::F16);
        assert_eq!(decide("output.weight"), TensorType::F16);
        let empty = Recipe::from_toml("").unwrap();
        let kept = empty.decide("x", &dims(&[32, 2]), TensorType::Q8_0, None);
        assert_eq!((kept.ty, kept.because), (TensorType::Q8_0, Because::NoRule));
    }

    #[test]
    fn some_types_demand_importance() {
        use TensorType::*;
        for (ty, demands) in [(Iq2Xxs, true), (Iq2Xs, true), (Q2K, false), (F32, false)] {
            assert_eq!(demands_importance(ty), demands, "{ty}");
        }
    }
}
