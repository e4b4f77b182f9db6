//! Which routed experts a timeline used, layer by layer: how unevenly, how often twice in a row, and how often a cache of so
//! many experts would have had them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::exec::{Tap, Values};
use crate::graph::{NodeName, Op};

/// What was seen of all sessions that [`ExpertUse::tap`] watches.
///
/// ```
/// use ds4_model::diagnose::ExpertUse;
/// use ds4_model::{Engine, Options};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
/// let engine = Engine::open(path, Options::default())?;
/// let used = ExpertUse::of(&engine);
/// let mut session = engine.session()?;
/// session.watch(Some(used.tap()));
/// session.sync(&[5, 6, 7])?;
/// assert_eq!(used.to_json()["layers"][0]["tokens"], 3);
/// # Ok::<(), ds4_model::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExpertUse {
    layers: Arc<Mutex<Vec<Layer>>>,
    /// By the name of the values with the experts' numbers: the place in `layers`.
    names: Arc<HashMap<NodeName, usize>>,
}

/// One layer.
#[derive(Clone, Debug)]
struct Layer {
    name: String,
    /// Experts of a token.
    used: usize,
    tokens: u64,
    /// By expert.
    counts: Vec<u64>,
    /// Experts of the token before, at the position before `next`.
    before: Vec<usize>,
    next: u64,
    /// Selections that the token before had too, and those that could have been.
    repeated: [u64; 2],
    /// Experts by how recently they were used, the last one first.
    recent: Vec<usize>,
    /// Selections by the place that the expert had in `recent`: a cache of more slots than that would have had it.
    places: Vec<u64>,
}

impl ExpertUse {
    /// Of the routed layers of `engine`'s model; nothing is seen yet.
    pub fn of(engine: &Engine) -> Self {
        let graph = engine.graph();
        let (mut layers, mut names) = (Vec::new(), HashMap::new());
        for node in graph.nodes() {
            let Op::Experts { gate, .. } = &node.op else {
                continue;
            };
            let ids = &graph.values()[node.inputs[1].0 as usize];
            let experts = engine.weights().info(*gate).slices;
            names.insert(ids.name.clone(), layers.len());
            layers.push(Layer::new(
                node.name.as_str().to_owned(),
                experts,
                ids.shape.cols as usize,
            ));
        }
        Self {
            layers: Arc::new(Mutex::new(layers)),
            names: Arc::new(names),
        }
    }

    /// For [`Session::watch`](crate::Session::watch).
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Layer>> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For each layer: `tokens` that were computed, `counts` by expert, how many are `distinct`, the `entropy_bits` of their
    /// shares (`log₂` of the experts when all are alike), the share of selections that was `repeated` from the token
    /// before, and of a cache that holds the last used experts the share of `hits` by its `slots`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let layers: Vec<Value> = self.lock().iter().map(Layer::to_json).collect();
        json!({ "layers": layers })
    }
}

impl Tap for ExpertUse {
    fn wants(&self, name: &NodeName) -> bool {
        self.names.contains_key(name)
    }

    fn see(&mut self, name: &NodeName, position: u32, rows: usize, values: Values<'_>) {
        let (Some(&layer), Values::I32(ids)) = (self.names.get(name), values) else {
            return;
        };
        self.lock()[layer].see(position.into(), rows, ids);
    }
}

impl Layer {
    fn new(name: String, experts: usize, used: usize) -> Self {
        Self {
            name,
            used,
            tokens: 0,
            counts: vec![0; experts],
            before: Vec::new(),
            next: 0,
            repeated: [0; 2],
            recent: Vec::with_capacity(experts),
            places: vec![0; experts],
        }
    }

    /// Count the tokens from `position` on, with their experts in `[rows, used]`.
    fn see(&mut self, position: u64, rows: usize, ids: &[i32]) {
        if position != self.next {
            self.before.clear();
        }
        for row in ids.chunks_exact(self.used).take(rows) {
            let experts: Vec<usize> = row
                .iter()
                .filter_map(|&id| usize::try_from(id).ok())
                .filter(|&id| id < self.counts.len())
                .collect();
            if !self.before.is_empty() {
                let again = experts.iter().filter(|id| self.before.contains(id)).count();
                self.repeated[0] += again as u64;
                self.repeated[1] += experts.len() as u64;
            }
            for &expert in &experts {
                self.counts[expert] += 1;
                if let Some(place) = self.recent.iter().position(|&e| e == expert) {
                    self.places[place] += 1;
                    self.recent.remove(place);
                }
                self.recent.insert(0, expert);
            }
            self.before = experts;
            self.tokens += 1;
        }
        self.next = position + rows as u64;
    }

    fn to_json(&self) -> Value {
        let total: u64 = self.counts.iter().sum();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let entropy: f64 = self
            .counts
            .iter()
            .filter(|&&count| count > 0)
            .map(|&count| share(count, total))
            .map(|p| -p * p.log2())
            .sum();
        let mut slots = Vec::new();
        let mut at = self.used.max(1);
        while at < self.counts.len() {
            slots.push(at);
            at *= 2;
        }
        slots.push(self.counts.len());
        let hits: Vec<Value> = slots
            .into_iter()
            .map(|slots| {
                let found = self.places[..slots.min(self.places.len())].iter().sum();
                json!({ "slots": slots, "hits": share(found, total) })
            })
            .collect();
        json!({
            "name": self.name,
            "experts": self.counts.len(),
            "used": self.used,
            "tokens": self.tokens,
            "distinct": self.counts.iter().filter(|&&count| count > 0).count(),
            "entropy_bits": entropy,
            "repeated": share(self.repeated[0], self.repeated[1]),
            "cache": hits,
            "counts": self.counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn repeats_places_and_shares_are_counted() {
        let mut layer = Layer::new("l00.ffn.experts".into(), 8, 2);
        // In one step and token by token is the same.
        layer.see(0, 2, &[0, 1, 1, 2]);
        layer.see(2, 1, &[1, 3]);
        // Elsewhere on the timeline: nothing is before it.
        layer.see(9, 1, &[1, 0]);
        let json = layer.to_json();
        assert_eq!((&json["tokens"], &json["distinct"]), (&4.into(), &4.into()));
        assert_eq!(json["counts"], json!([2, 4, 1, 1, 0, 0, 0, 0]));
        // Two pairs of neighbours, one expert in common each.
        assert_eq!(json["repeated"], 0.5);
        // 0 1 | 1 (place 0) 2 | 1 (place 1) 3 | 1 (place 1) 0 (place 3)
        assert_eq!(layer.places[..4], [1, 2, 0, 1]);
        let cache = json!([
            {"slots": 2, "hits": 0.375}, {"slots": 4, "hits": 0.5}, {"slots": 8, "hits": 0.5}
        ]);
        assert_eq!(json["cache"], cache);
        // 2, 4, 1 and 1 of 8.
        assert_eq!(json["entropy_bits"], 0.25 * 2.0 + 0.5 + 2.0 * 0.125 * 3.0);
    }

    /// What the layers of a model choose, whatever the steps; and watching changes nothing.
    #[test]
    fn a_session_is_watched_without_a_difference() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
        let options = Options {
            context: Some(64),
            threads: 1,
            ..Options::default()
        };
        let engine = Engine::open(path, options).unwrap();
        let tokens: Vec<u32> = (5..25).collect();
        let mut plain = engine.session().unwrap();
        plain.sync(&tokens).unwrap();
        let watched = |lens: [usize; 2]| {
            let used = ExpertUse::of(&engine);
            let mut session = engine.session().unwrap();
            session.watch(Some(used.tap()));
            let (first, rest) = tokens.split_at(lens[0]);
            session.sync(first).unwrap();
            for part in rest.chunks(lens[1]) {
                let so_far = session.tokens().len() + part.len();
                session.sync(&tokens[..so_far]).unwrap();
            }
            assert_eq!(session.logits(), plain.logits());
            used.to_json()
        };
        let at_once = watched([20, 1]);
        assert_eq!(watched([3, 1]), at_once);
        let layers = at_once["layers"].as_array().unwrap();
        assert_eq!(layers.len(), engine.config().layers);
        for layer in layers {
            let used = layer["used"].as_u64().unwrap();
            let counts = layer["counts"].as_array().unwrap().iter();
            let total: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
            assert_eq!((&layer["tokens"], total), (&20.into(), 20 * used));
        }
    }
}
