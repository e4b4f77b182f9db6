//! A launch: blocks one after the other, the waves of a block in turns between barriers.

use crate::descriptor::Initial;
use crate::exec::lds;
use crate::exec::step::{self, Context};
use crate::exec::{State, Wave};
use crate::fault::{Done, Fault, Stop, Trouble};
use crate::memory::{Block, Memory, View};
use crate::module::{Kernel, is_hidden};
use crate::options::{Options, Order, Stats};

/// LDS of a workgroup on gfx11.
const LDS_LIMIT: u64 = 65536;

impl Kernel {
    /// Run `grid` blocks of `block` work-items each with the argument block `kernarg`.
    ///
    /// * `grid`: blocks along x, y, z · `block`: work-items along x, y, z
    /// * `kernarg`: at least [`args_bytes`](Kernel::args_bytes) bytes; what the runtime fills (hidden arguments) is added here
    ///
    /// # Errors
    /// The first [`Fault`]; memory keeps what was written before it.
    pub fn launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        kernarg: &[u8],
        memory: &dyn Memory,
        options: &Options,
    ) -> Result<Stats, Box<Fault>> {
        let before = |trouble| {
            Box::new(Fault {
                kernel: self.name().to_owned(),
                instruction: String::new(),
                address: 0,
                block: [0; 3],
                wave: 0,
                lane: None,
                trouble,
            })
        };
        let items = self.check(grid, block, kernarg, options).map_err(before)?;
        if items == 0 {
            return Ok(Stats::default());
        }
        let args = Block::new(&self.arguments(grid, block, kernarg, options));
        let packet = Block::new(&self.packet(grid, block, args.address(), options));
        let lds_bytes = self.lds_bytes() + options.dynamic_lds_bytes;
        let mut own: Vec<_> = self.image.parts().collect();
        own.extend(args.part(0, u64::from(self.note.kernarg_bytes).max(1), false));
        own.extend(packet.part(0, 64, false));
        let mut run = Run {
            kernel: self,
            options,
            block,
            items,
            args: args.address(),
            packet: packet.address(),
            waves: (0..items.div_ceil(32))
                .map(|_| Wave::new(options.check_undefined))
                .collect(),
            context: Context {
                memory: View::new(memory, own),
                lds: lds::Block::new(lds_bytes, options.check_undefined, options.check_races),
                code: &self.code,
                base: self.image.base(),
            },
            stats: Stats::default(),
            steps: 0,
            random: 0,
        };
        if let Order::Seeded(seed) = options.order {
            run.random = seed;
        }
        for z in 0..grid[2] {
            for y in 0..grid[1] {
                for x in 0..grid[0] {
                    run.block([x, y, z])?;
                }
            }
        }
        Ok(run.stats)
    }

    /// Work-items of a block.
    fn check(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        kernarg: &[u8],
        options: &Options,
    ) -> Result<u32, Trouble> {
        let items: u64 = block.iter().map(|&n| u64::from(n)).product();
        let fits = |what, found: u64, limit: u64| {
            if found > limit {
                Err(Trouble::Launch { what, found, limit })
            } else {
                Ok(())
            }
        };
        // Ids of work-items are fields of 10 bits.
        for n in block {
            fits("a dimension of the block", n.into(), 1024)?;
        }
        fits("the block size", items, self.max_block().min(1024).into())?;
        let lds = u64::from(self.lds_bytes()) + u64::from(options.dynamic_lds_bytes);
        fits("LDS", lds, LDS_LIMIT)?;
        for (n, size) in grid.into_iter().zip(block) {
            fits(
                "work-items along one axis",
                u64::from(n) * u64::from(size),
                u32::MAX.into(),
            )?;
        }
        let expected = self.args_bytes() as u64;
        if (kernarg.len() as u64) < expected {
            return Err(Trouble::Arguments {
                expected,
                found: kernarg.len() as u64,
            });
        }
        Ok(items as u32)
    }

    /// The argument block: the caller's part, and what the runtime fills.
    fn arguments(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        kernarg: &[u8],
        options: &Options,
    ) -> Vec<u8> {
        let mut out = vec![0; self.note.kernarg_bytes as usize];
        for arg in self.args() {
            let range = arg.offset as usize..(arg.offset + arg.bytes) as usize;
            out[range.clone()].copy_from_slice(&kernarg[range]);
        }
        for arg in self.note.args.iter().filter(|a| is_hidden(a)) {
            let axis = match arg.kind.as_bytes().last() {
                Some(b'y') => 1,
                Some(b'z') => 2,
                _ => 0,
            };
            let value: u64 = match arg.kind.trim_end_matches(['x', 'y', 'z']) {
                "hidden_block_count_" => grid[axis].into(),
                "hidden_group_size_" => block[axis].into(),
                "hidden_dynamic_lds_size" => options.dynamic_lds_bytes.into(),
                "hidden_grid_dims" => match (block[1] * grid[1], block[2] * grid[2]) {
                    (1, 1) => 1,
                    (_, 1) => 2,
                    _ => 3,
                },
                // Whole blocks only, no offsets, none of the services of a runtime.
                _ => 0,
            };
            let bytes = value.to_le_bytes();
            let count = (arg.bytes as usize).min(8);
            out[arg.offset as usize..][..count].copy_from_slice(&bytes[..count]);
        }
        out
    }

    /// The AQL kernel dispatch packet, as far as kernels look at it.
    fn packet(&self, grid: [u32; 3], block: [u32; 3], args: u64, options: &Options) -> Vec<u8> {
        let mut out = vec![0; 64];
        for axis in 0..3 {
            let size = block[axis] as u16;
            out[4 + 2 * axis..][..2].copy_from_slice(&size.to_le_bytes());
            let items = grid[axis] * block[axis];
            out[12 + 4 * axis..][..4].copy_from_slice(&items.to_le_bytes());
        }
        let lds = self.lds_bytes() + options.dynamic_lds_bytes;
        out[28..32].copy_from_slice(&lds.to_le_bytes());
        out[40..48].copy_from_slice(&args.to_le_bytes());
        out
    }
}

struct Run<'a> {
    kernel: &'a Kernel,
    options: &'a Options,
    block: [u32; 3],
    items: u32,
    args: u64,
    packet: u64,
    waves: Vec<Wave>,
    context: Context<'a>,
    stats: Stats,
    steps: u64,
    random: u64,
}

impl Run<'_> {
    fn block(&mut self, id: [u32; 3]) -> Result<(), Box<Fault>> {
        self.context.lds.reset();
        for index in 0..self.waves.len() {
            self.start(index, id);
        }
        self.stats.blocks += 1;
        self.stats.waves += self.waves.len() as u64;
        while self.waves.iter().any(|w| w.state != State::Ended) {
            for index in self.order() {
                if self.waves[index].state == State::Ready {
                    self.wave(index)
                        .map_err(|stop| self.fault(index, id, *stop))?;
                }
            }
            self.meet().map_err(|(index, trouble)| {
                self.fault(
                    index,
                    id,
                    Stop {
                        lane: None,
                        trouble,
                    },
                )
            })?;
        }
        Ok(())
    }

    /// Registers of wave `index` of block `id` as the hardware sets them.
    fn start(&mut self, index: usize, id: [u32; 3]) {
        let first = 32 * index as u32;
        let lanes = match self.items - first {
            n @ 0..=31 => (1 << n) - 1,
            _ => u32::MAX,
        };
        let w = &mut self.waves[index];
        let descriptor = &self.kernel.descriptor;
        w.reset(
            index as u32,
            lanes,
            self.kernel.entry,
            descriptor.mode.denormals,
            self.kernel.note.vgprs,
        );
        for &(register, holds) in &descriptor.sgprs {
            match holds {
                Initial::Arguments => w.write_s64(register, self.args),
                Initial::DispatchPacket => w.write_s64(register, self.packet),
                Initial::DispatchId => w.write_s64(register, 0),
                Initial::BlockId(axis) => w.write_s(register, id[axis]),
            }
        }
        // Work-item ids: x in bits 0 to 9 of v0, y above, z above that.
        let [nx, ny, _] = self.block;
        let ids = std::array::from_fn(|l| {
            let item = first + l as u32;
            (item % nx) | ((item / nx % ny) << 10) | (item / nx / ny) << 20
        });
        w.write_v(0, lanes, &ids);
    }

    fn order(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.waves.len()).collect();
        match self.options.order {
            Order::Forward => {}
            Order::Reverse => order.reverse(),
            Order::Seeded(_) => {
                for k in (1..order.len()).rev() {
                    order.swap(k, (self.next_random() % (k as u64 + 1)) as usize);
                }
            }
        }
        order
    }

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Run a wave up to its next barrier or its end.
    fn wave(&mut self, index: usize) -> Done {
        let w = &mut self.waves[index];
        let insts = &self.kernel.code.insts;
        let limit = self.options.step_limit;
        while w.state == State::Ready {
            let at = w.pc;
            let Some(inst) = insts.get(at) else {
                let address = self.kernel.code.address(at);
                return Err(Trouble::Jump { address }.into());
            };
            w.pc = at + 1;
            self.steps += 1;
            if self.steps > limit {
                w.pc = at;
                return Err(Trouble::StepLimit { limit }.into());
            }
            self.stats.count[inst.class as usize] += 1;
            if let Err(stop) = step::step(w, inst, &mut self.context) {
                w.pc = at;
                return Err(stop);
            }
        }
        Ok(())
    }

    /// All waves have stopped: let them through the barrier when it is the same one for all.
    fn meet(&mut self) -> Result<(), (usize, Trouble)> {
        let mut waiting = (0..self.waves.len()).filter_map(|k| match self.waves[k].state {
            State::Barrier(at) => Some((k, at)),
            _ => None,
        });
        let Some((first, at)) = waiting.next() else {
            return Ok(());
        };
        let address = |at: usize| self.kernel.code.address(at.saturating_sub(1));
        if let Some((other, there)) = waiting.find(|&(_, there)| there != at) {
            let what = format!(
                "wave {first} waits at {:#x}, wave {other} at {:#x}",
                address(at),
                address(there)
            );
            return Err((other, Trouble::BarrierDivergence { what }));
        }
        let ended = (0..self.waves.len()).find(|&k| self.waves[k].state == State::Ended);
        if let (Some(ended), false) = (ended, self.options.ended_waves_pass) {
            let what = format!(
                "wave {first} waits at {:#x}, wave {ended} has ended",
                address(at)
            );
            return Err((first, Trouble::BarrierDivergence { what }));
        }
        for w in &mut self.waves {
            if w.state != State::Ended {
                w.state = State::Ready;
            }
        }
        self.context.lds.barrier();
        Ok(())
    }

    fn fault(&self, index: usize, block: [u32; 3], stop: Stop) -> Box<Fault> {
        let (code, w) = (&self.kernel.code, &self.waves[index]);
        // A wave at a barrier has its counter behind it.
        let at = match w.state {
            State::Barrier(next) => next.saturating_sub(1),
            _ => w.pc,
        };
        Box::new(Fault {
            kernel: self.kernel.name().to_owned(),
            instruction: code.text(at).to_owned(),
            address: code.address(at),
            block,
            wave: index as u32,
            lane: stop.lane,
            trouble: stop.trouble,
        })
    }
}
