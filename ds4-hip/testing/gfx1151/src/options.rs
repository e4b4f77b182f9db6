//! How a launch runs, and what it counts.

/// The order in which the waves of a block run between two barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Wave 0 first.
    #[default]
    Forward,
    /// The last wave first.
    Reverse,
    /// A new random order after each barrier, the same for the same seed.
    Seeded(u64),
}

/// How a launch runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The order of the waves of a block.
    pub order: Order,
    /// Whether LDS accesses of different waves with no barrier between are faults.
    pub check_races: bool,
    /// Whether reading a register or LDS byte that nothing wrote is a fault.
    pub check_undefined: bool,
    /// Whether a wave that has ended counts as waiting at every barrier, as on the hardware. HIP forbids such kernels.
    pub ended_waves_pass: bool,
    /// Wave instructions after which the launch is given up.
    pub step_limit: u64,
    /// Bytes of LDS beyond the kernel's own (`sharedMemBytes` of a HIP launch).
    pub dynamic_lds_bytes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            order: Order::Forward,
            check_races: true,
            check_undefined: true,
            ended_waves_pass: false,
            step_limit: 1 << 36,
            dynamic_lds_bytes: 0,
        }
    }
}

/// Which unit of the hardware issues an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Vector arithmetic.
    Valu,
    /// Matrix multiplication.
    Wmma,
    /// Scalar arithmetic.
    Salu,
    /// Branches, barriers and the end.
    Branch,
    /// Loads through the scalar cache.
    Smem,
    /// LDS and the exchange between lanes.
    Lds,
    /// Global and flat memory.
    Vmem,
    /// Waits and hints, which do nothing here.
    Wait,
}

impl Class {
    /// How many there are.
    pub(crate) const COUNT: usize = 8;
}

/// What a launch executed, in wave instructions. A pair of VALU instructions issued together (VOPD) counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub(crate) count: [u64; Class::COUNT],
    /// Blocks run.
    pub blocks: u64,
    /// Waves run.
    pub waves: u64,
}

impl Stats {
    /// Wave instructions of one class.
    pub fn of(&self, class: Class) -> u64 {
        self.count[class as usize]
    }

    /// All wave instructions.
    pub fn total(&self) -> u64 {
        self.count.iter().sum()
    }
}
