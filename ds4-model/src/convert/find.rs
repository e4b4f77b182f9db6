//! `Found`: each tensor of the result looked for in the files, with its scales, its shape and its type checked.

use std::collections::HashSet;

use super::error::{Problem, Shape};
use super::names::{self, Kind, Origin, Want};
use super::part::{self, Form, GROUP, Part, TILE};
use super::safetensors::Dtype;
use super::shards::{Place, Shards};

/// The search for tensors.
pub(super) struct Found<'a> {
    shards: &'a Shards,
    experts: usize,
    /// The tensors that have a place in the result.
    pub(super) used: HashSet<Place>,
    /// What is wrong, all of it.
    pub(super) problems: Vec<Problem>,
}

impl<'a> Found<'a> {
    /// In these files, of a model with so many routed experts.
    pub(super) fn new(shards: &'a Shards, experts: usize) -> Self {
        Self {
            shards,
            experts,
            used: HashSet::new(),
            problems: Vec::new(),
        }
    }

    /// The matrices of a tensor; `None` with a problem noted.
    pub(super) fn parts(&mut self, want: &Want) -> Option<Vec<Part>> {
        let (before, experts) = (self.problems.len(), self.experts);
        let parts: Vec<Part> = match &want.from {
            Origin::One(names) => vec![self.one(want, names)?],
            Origin::Experts { stacked, each } => {
                let (name, of, first) = stacked;
                if let Some(place) = self.shards.find(std::slice::from_ref(name)) {
                    let shape = [experts, *of, want.cols];
                    let parts = (0..experts).map(|e| self.part(want, place, &shape, e, *first));
                    parts.collect::<Option<_>>()?
                } else {
                    // Nobody wants to read of each of 256 experts that none is there.
                    let parts = (0..experts).map_while(|e| {
                        let names = names::expert(*each, e);
                        (self.problems.len() < before + 8).then(|| self.one(want, &names))
                    });
                    let parts: Vec<Option<Part>> = parts.collect();
                    parts.into_iter().collect::<Option<_>>()?
                }
            }
        };
        let ty = parts[0].form.ty();
        for other in parts.iter().filter(|part| part.form.ty() != ty) {
            self.problems.push(Problem::Mixed {
                tensor: self.shards.entry(other.place).name.clone(),
                found: other.form.ty(),
                expected: ty,
            });
        }
        (self.problems.len() == before).then_some(parts)
    }

    fn one(&mut self, want: &Want, names: &[String]) -> Option<Part> {
        let Some(place) = self.shards.find(names) else {
            self.problems.push(Problem::Missing {
                name: want.name.as_str().into(),
                tried: names.to_vec(),
            });
            return None;
        };
        match want.kind {
            Kind::Vector => self.part(want, place, &[want.cols], 0, 0),
            _ => self.part(want, place, &[want.rows, want.cols], 0, 0),
        }
    }

    /// Matrix `index` of a tensor of this shape, without its first `before` rows.
    fn part(
        &mut self,
        want: &Want,
        place: Place,
        shape: &[usize],
        index: usize,
        before: usize,
    ) -> Option<Part> {
        self.used.insert(place);
        let of = match shape {
            [_, of, _] => *of,
            _ => want.rows,
        };
        let form = self.form(want, place, shape, (of, index, before))?;
        Some(Part {
            place,
            first: index * of + before,
            cols: want.cols,
            form,
        })
    }

    fn form(
        &mut self,
        want: &Want,
        place: Place,
        shape: &[usize],
        (of, index, before): (usize, usize, usize),
    ) -> Option<Form> {
        let entry = self.shards.entry(place);
        let kind = |expected| Problem::Dtype {
            tensor: entry.name.clone(),
            found: entry.spelled.clone(),
            expected,
        };
        const FLOATS: &str = "F32, F16 or BF16";
        const WEIGHTS: &str = "F32, F16, BF16, F8_E4M3 with scales, or F4, I8 or U8 with scales";
        let Some(dtype) = entry.dtype else {
            self.problems.push(kind(match want.kind {
                Kind::Vector => FLOATS,
                Kind::Table => "I32 or I64",
                _ => WEIGHTS,
            }));
            return None;
        };
        // Two E2M1 numbers are one element of a byte; F4 counts them itself.
        let packed = matches!(dtype, Dtype::I8 | Dtype::U8) && want.kind != Kind::Table;
        let mut expected: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
        if let Some(last) = expected.last_mut().filter(|_| packed) {
            *last /= 2;
        }
        let same = match want.kind {
            // Vectors of one number may have no extent at all.
            Kind::Vector => entry.shape.iter().product::<u64>() == want.cols as u64,
            _ => entry.shape == expected,
        };
        if !same {
            self.problems.push(Problem::Shape {
                tensor: entry.name.clone(),
                found: Shape(entry.shape.clone()),
                expected: Shape(expected),
            });
            return None;
        }
        match (want.kind, dtype) {
            (Kind::Table, Dtype::I32 | Dtype::I64) => Some(Form::Integers {
                wide: dtype == Dtype::I64,
                experts: self.experts,
            }),
            (Kind::Table, _) => {
                self.problems.push(kind("I32 or I64"));
                None
            }
            (kind, dtype) if part::floats(dtype).is_some() => {
                // Norms, biases and scales are added or multiplied as floats by every reader.
                let form = match kind {
                    Kind::Vector => Form::Widened,
                    _ => Form::Floats,
                };
                part::floats(dtype).map(form)
            }
            (Kind::Vector, _) => {
                self.problems.push(kind(FLOATS));
                None
            }
            (_, Dtype::F8E4m3) => {
                let (high, wide) = (of.div_ceil(TILE), want.cols.div_ceil(TILE));
                let mut shape: Vec<usize> = shape.to_vec();
                if let [.., rows, cols] = &mut shape[..] {
                    (*rows, *cols) = (high, wide);
                }
                let (scales, powers) = self.scales(place, dtype, &shape)?;
                Some(Form::Tiles {
                    scales,
                    first: index * high,
                    before,
                    powers,
                })
            }
            (_, Dtype::F4 | Dtype::I8 | Dtype::U8) if want.cols.is_multiple_of(GROUP) => {
                let mut shape: Vec<usize> = shape.to_vec();
                if let Some(cols) = shape.last_mut() {
                    *cols /= GROUP;
                }
                let (scales, powers) = self.scales(place, dtype, &shape)?;
                Some(Form::Groups { scales, powers })
            }
            _ => {
                self.problems.push(kind(WEIGHTS));
                None
            }
        }
    }

    /// The scales of a tensor, and whether they are powers of two.
    fn scales(&mut self, of: Place, dtype: Dtype, shape: &[usize]) -> Option<(Place, bool)> {
        let tensor = &self.shards.entry(of).name;
        let tried = names::scales(tensor);
        let Some(place) = self.shards.find(&tried) else {
            self.problems.push(Problem::NoScales {
                tensor: tensor.clone(),
                dtype,
                tried,
            });
            return None;
        };
        self.used.insert(place);
        let entry = self.shards.entry(place);
        let expected: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
        if entry.shape != expected {
            self.problems.push(Problem::Shape {
                tensor: entry.name.clone(),
                found: Shape(entry.shape.clone()),
                expected: Shape(expected),
            });
            return None;
        }
        match entry.dtype {
            // Bytes are exponents: frameworks without the type store them so.
            Some(Dtype::F8E8m0 | Dtype::U8) => Some((place, true)),
            Some(Dtype::F32) => Some((place, false)),
            _ => {
                self.problems.push(Problem::Dtype {
                    tensor: entry.name.clone(),
                    found: entry.spelled.clone(),
                    expected: "F8_E8M0, U8 or F32",
                });
                None
            }
        }
    }
}
