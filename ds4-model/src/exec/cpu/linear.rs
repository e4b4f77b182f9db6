//! Packed weights: embedding rows, projections, grouped projections, experts.

use ds4_quant::{Activations, Job, codec, matmul_many};

use super::experts::{self, Experts};
use super::run::{Walk, views};
use crate::exec::ExecError;
use crate::graph::Node;
use crate::weights::MatrixId;

impl Walk<'_> {
    /// One decoded row of the table for each token.
    pub(super) fn embed(&mut self, node: &Node, table: MatrixId) -> Result<(), ExecError> {
        let table = self.weights.matrix(table);
        let codec = codec(table.ty()).ok_or(ds4_quant::Error::NoCodec { ty: table.ty() })?;
        let out = self.range(node.outputs[0]);
        let rows = self.arena[out].chunks_exact_mut(table.cols());
        for (i, (&token, row)) in self.tokens.iter().zip(rows).enumerate() {
            let at = token as usize;
            if at >= table.rows() {
                let position = self.step.pos + i as u32;
                return Err(ExecError::Token {
                    token,
                    position,
                    vocab: table.rows(),
                });
            }
            codec.decode(table.part(at, at + 1).bytes(), row)?;
        }
        Ok(())
    }

    /// `y_i = W_i · x` for all of a node's outputs; `x` is quantized once.
    pub(super) fn linears(&mut self, node: &Node, weights: &[MatrixId]) -> Result<(), ExecError> {
        let (rows, cols) = (self.rows(node.inputs[0]), self.cols(node.inputs[0]));
        let input = self.range(node.inputs[0]);
        let x = Activations::new(&self.arena[input], rows, cols, self.precision)?;
        let outputs: Vec<_> = node.outputs.iter().map(|&t| self.range(t)).collect();
        // In memory order, so that the arena can be cut into its pieces.
        let mut order: Vec<usize> = (0..outputs.len()).collect();
        order.sort_unstable_by_key(|&i| outputs[i].start);
        let mut jobs = Vec::with_capacity(order.len());
        let (mut rest, mut cut) = (&mut self.arena[..], 0);
        for i in order {
            let (_, from) = rest.split_at_mut(outputs[i].start - cut);
            let (y, after) = from.split_at_mut(outputs[i].len());
            jobs.push(Job {
                w: self.weights.matrix(weights[i]),
                x: &x,
                y,
            });
            (rest, cut) = (after, outputs[i].end);
        }
        Ok(matmul_many(self.pool, &mut jobs)?)
    }

    /// Block g of the output is `W_g · x_g`.
    pub(super) fn grouped_linear(
        &mut self,
        node: &Node,
        weight: MatrixId,
        groups: usize,
    ) -> Result<(), ExecError> {
        let w = self.weights.matrix(weight);
        let rows = self.rows(node.inputs[0]);
        let (cols, out_rows) = (w.cols(), w.rows() / groups);
        let [x, y] = views(
            self.arena,
            [self.range(node.inputs[0]), self.range(node.outputs[0])],
        );
        // The groups of a token lie side by side: regroup so that each product sees whole rows.
        let mut gathered = vec![0.0; rows * cols];
        let mut inputs = Vec::with_capacity(groups);
        for g in 0..groups {
            for (to, row) in gathered
                .chunks_exact_mut(cols)
                .zip(x.chunks_exact(cols * groups))
            {
                to.copy_from_slice(&row[g * cols..(g + 1) * cols]);
            }
            inputs.push(Activations::new(&gathered, rows, cols, self.precision)?);
        }
        let mut product = vec![0.0; if rows == 1 { 0 } else { y.len() }];
        let target = if rows == 1 { &mut *y } else { &mut product[..] };
        let mut jobs: Vec<Job<'_>> = target
            .chunks_exact_mut(rows * out_rows)
            .zip(&inputs)
            .enumerate()
            .map(|(g, (y, x))| Job {
                w: w.part(g * out_rows, (g + 1) * out_rows),
                x,
                y,
            })
            .collect();
        matmul_many(self.pool, &mut jobs)?;
        for (g, product) in product.chunks_exact(rows * out_rows).enumerate() {
            for (row, y) in product
                .chunks_exact(out_rows)
                .zip(y.chunks_exact_mut(out_rows * groups))
            {
                y[g * out_rows..(g + 1) * out_rows].copy_from_slice(row);
            }
        }
        Ok(())
    }

    /// Weighted sum of each row's experts.
    pub(super) fn experts(&mut self, node: &Node, experts: &Experts) -> Result<(), ExecError> {
        let (rows, cols) = (self.rows(node.inputs[0]), self.cols(node.inputs[0]));
        let ranges = [
            node.inputs[0],
            node.inputs[1],
            node.inputs[2],
            node.outputs[0],
        ]
        .map(|t| self.range(t));
        let [x, ids, weights, out] = views(self.arena, ranges);
        let x = Activations::new(x, rows, cols, self.precision)?;
        let routed = experts::Routed {
            x: &x,
            ids: bytemuck::cast_slice(ids),
            weights,
        };
        experts::run(self.pool, self.weights, experts, routed, self.experts, out)
    }
}
