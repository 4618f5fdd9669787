//! GPUs of this machine: what they have, whether the kernels run on them, and what all devices on one of them have in common.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::result::{self, DriverError, module};
use cudarc::driver::{CudaContext, sys};

use super::Error;
use crate::kernels::{Kernel, TOGETHER_OR_WITH_TABLES};

/// Why there is no GPU.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Absent {
    /// The program was built without code for GPUs.
    #[error("this build has no code for GPUs")]
    Code,
    /// There is no driver.
    #[error("no driver of NVIDIA is installed")]
    Driver,
    /// There are not so many GPUs.
    #[error("there is no GPU {number}: this machine has {count}")]
    Gpu {
        /// The GPU that was asked for.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// The kernels do not run on it.
    #[error("GPU {number}, {name}, does not run the kernels: {lack}")]
    Unfit {
        /// The GPU that was asked for.
        number: usize,
        /// Its name.
        name: String,
        /// What it lacks.
        lack: Lack,
    },
    /// Blocks of so many threads cannot be launched.
    #[error("VEIL_GPU_THREADS is `{said}`, and takes a multiple of 32 from 32 to 1024")]
    Threads {
        /// What was asked for.
        said: String,
    },
    /// The driver does not take it.
    #[error("the driver refuses the GPU: {0}")]
    Refused(String),
}

/// What a GPU or its driver lacks for the kernels.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// A driver that is too old for the code.
    #[error(
        "its driver is for CUDA {}, and the kernels need {}: install a driver of release 580 or later",
        Version(*.has),
        Version(*.needs)
    )]
    Driver {
        /// The version of CUDA that the driver is for: 13020 is 13.2.
        has: u32,
        /// That which the code was made for.
        needs: u32,
    },
    /// Launches whose blocks run at once.
    #[error("it does not launch blocks that all run at once (cooperative launches)")]
    Cooperative,
    /// Shared memory of a block.
    #[error(
        "a block has {} KB of shared memory at most, and tables of AES take {} KB: GPUs of data centres have it, from compute capability 8.0 on",
        .has / 1024,
        .needs / 1024
    )]
    Shared {
        /// Bytes that a block may have.
        has: u64,
        /// Bytes that one needs.
        needs: u64,
    },
    /// Room for one block of a kernel.
    #[error(
        "a block of `{kernel}` with {threads} threads does not fit on a multiprocessor: VEIL_GPU_THREADS=256 makes blocks smaller"
    )]
    Block {
        /// The kernel.
        kernel: &'static str,
        /// Threads of a block.
        threads: u32,
    },
}

/// A version of CUDA.
struct Version(u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// What is known of a GPU before anything runs on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// The version of CUDA that the driver is for: 13020 is 13.2.
    pub driver: u32,
    /// Compute capability.
    pub capability: [u32; 2],
    /// Multiprocessors.
    pub units: u32,
    /// Their clock at most, in kHz.
    pub clock_khz: u32,
    /// Bytes of shared memory that a block may have.
    pub shared: u64,
    /// Whether all blocks of a launch can be had at once.
    pub cooperative: bool,
    /// Bytes of device memory.
    pub memory: u64,
}

impl Facts {
    /// The version of CUDA that the code is made for (scripts/cuda.sh).
    pub const CUDA: u32 = 13000;

    /// Refuses a GPU that lacks something for the kernels.
    ///
    /// # Errors
    /// The first [`Lack`].
    pub fn suit(&self) -> Result<(), Lack> {
        if self.driver < Self::CUDA {
            return Err(Lack::Driver {
                has: self.driver,
                needs: Self::CUDA,
            });
        }
        if !self.cooperative {
            return Err(Lack::Cooperative);
        }
        let shared = TOGETHER_OR_WITH_TABLES.iter().map(|kernel| kernel.shared);
        let needs = u64::from(shared.max().unwrap_or(0));
        if self.shared < needs {
            let has = self.shared;
            return Err(Lack::Shared { has, needs });
        }
        Ok(())
    }

    /// Those of GPU `number`, if there is one.
    fn of(number: usize) -> Result<Self, DriverError> {
        use sys::CUdevice_attribute_enum as Attribute;
        let device = result::device::get(i32::try_from(number).unwrap_or(i32::MAX))?;
        // SAFETY: the device is one that the driver has named, here and below.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) };
        let number = |which| attribute(which).map(|value| u32::try_from(value).unwrap_or(0));
        Ok(Facts {
            name: result::device::get_name(device)?,
            driver: driver()?,
            capability: [
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ],
            units: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            clock_khz: number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            shared: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
                .into(),
            cooperative: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? > 0,
            // SAFETY: as above.
            memory: unsafe { result::device::total_mem(device) }? as u64,
        })
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.capability;
        write!(
            f,
            "{}: compute capability {major}.{minor}, {} multiprocessors of up to {} MHz, {} KB of shared memory for a block, {} MB of memory, driver for CUDA {}",
            self.name,
            self.units,
            self.clock_khz / 1000,
            self.shared / 1024,
            self.memory / 1_000_000,
            Version(self.driver)
        )
    }
}

/// The version of CUDA that the driver is for.
fn driver() -> Result<u32, DriverError> {
    let mut version = 0;
    // SAFETY: it writes a number.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(u32::try_from(version).unwrap_or(0))
}

pub(super) fn refused(error: DriverError) -> Absent {
    Absent::Refused(error.to_string())
}

/// The code for GPUs, if the build was given it.
#[cfg(veil_fatbin)]
const CODE: Option<&Image> = Some(&Image(*include_bytes!(env!("VEIL_CUDA_FATBIN"))));
#[cfg(not(veil_fatbin))]
const CODE: Option<&Image> = None;

/// Code at a multiple of sixteen bytes: the driver reads numbers of eight from it.
#[repr(C, align(16))]
struct Image<T: ?Sized = [u8]>(T);

/// How many GPUs this machine has.
///
/// # Errors
/// [`Absent::Code`] if the build had no compiler for GPUs, [`Absent::Driver`] if no driver is installed, [`Absent::Refused`] if the driver does
/// not start.
pub fn count() -> Result<usize, Absent> {
    if CODE.is_none() {
        return Err(Absent::Code);
    }
    // SAFETY: it looks for the library and loads it, which runs the driver's own start; nothing of ours is handed over.
    if !unsafe { sys::is_culib_present() } {
        return Err(Absent::Driver);
    }
    // Without a GPU, the driver says so when it begins.
    match CudaContext::device_count() {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => Ok(0),
        Err(error) => Err(refused(error)),
    }
}

/// What GPU `number` has, whether or not the kernels run on it.
///
/// # Errors
/// [`Absent`] as of [`count`]; [`Absent::Gpu`] if there are not so many GPUs.
pub fn facts(number: usize) -> Result<Facts, Absent> {
    let count = count()?;
    if number >= count {
        return Err(Absent::Gpu { number, count });
    }
    Facts::of(number).map_err(refused)
}

/// Queues of a GPU that copies and launches of one process wait in: each lane has three streams, and with the 8 that are usual, copies of one
/// lane wait behind kernels of another.
const CONNECTIONS: &str = "32";

/// Asks the driver for as many queues as it has, unless the environment says how many. For the beginning of a program: it does nothing once there is
/// another thread, since that may be reading the environment, and it has no effect once a GPU was looked for.
pub fn prepare() {
    const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if matches!(threads, Ok(1)) && std::env::var_os(NAME).is_none() {
        #[expect(
            clippy::disallowed_methods,
            reason = "the driver takes it from nowhere else, and no other thread is there to read the environment"
        )]
        // SAFETY: this is the only thread of the process, so that no other one reads the environment meanwhile.
        unsafe {
            std::env::set_var(NAME, CONNECTIONS);
        };
    }
}

/// Threads of a block at most: fewer for tools that add to the registers of kernels.
pub(super) fn threads() -> Result<u32, Absent> {
    match std::env::var("VEIL_GPU_THREADS") {
        Ok(said) => threads_of(&said),
        Err(_) => Ok(1024),
    }
}

fn threads_of(said: &str) -> Result<u32, Absent> {
    let threads = said
        .parse()
        .ok()
        .filter(|threads: &u32| (32..=1024).contains(threads) && threads.is_multiple_of(32));
    threads.ok_or_else(|| Absent::Threads {
        said: said.to_owned(),
    })
}

/// A GPU with the kernels: one for all devices on it.
pub(super) struct Gpu {
    pub(super) context: Arc<CudaContext>,
    pub(super) facts: Facts,
    module: sys::CUmodule,
    functions: Mutex<BTreeMap<&'static str, sys::CUfunction>>,
}

// SAFETY: handles of the driver are for all threads of a process, each of which makes the context its own before it calls.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver's calls on a module are safe from several threads, and functions are behind a lock.
unsafe impl Sync for Gpu {}

/// GPUs that devices are on.
static OPEN: Mutex<BTreeMap<usize, Weak<Gpu>>> = Mutex::new(BTreeMap::new());

impl Gpu {
    /// GPU `number`, which others may have already, for blocks of so many threads.
    pub(super) fn open(number: usize, threads: u32) -> Result<Arc<Self>, Absent> {
        // Others wait, as loading the kernels is done once.
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&number).and_then(Weak::upgrade) {
            return Ok(gpu);
        }
        let code = CODE.ok_or(Absent::Code)?;
        let facts = facts(number)?;
        let unfit = |lack| Absent::Unfit {
            number,
            name: facts.name.clone(),
            lack,
        };
        facts.suit().map_err(unfit)?;
        let context = CudaContext::new(number).map_err(refused)?;
        keep_memory(&context).map_err(refused)?;
        // SAFETY: the code is an image that a compiler of NVIDIA made, whole, and lives as long as the program.
        let module = unsafe { module::load_data(code.0.as_ptr().cast()) }.map_err(refused)?;
        let gpu = Arc::new(Gpu {
            context,
            facts: facts.clone(),
            module,
            functions: Mutex::default(),
        });
        for kernel in TOGETHER_OR_WITH_TABLES {
            let threads = threads.min(kernel.block);
            let refused = |error: Error| Absent::Refused(format!("{}: {error}", kernel.name));
            if gpu.blocks(kernel, threads).map_err(refused)? < 1 {
                let kernel = kernel.name;
                return Err(unfit(Lack::Block { kernel, threads }));
            }
        }
        open.insert(number, Arc::downgrade(&gpu));
        Ok(gpu)
    }

    /// The function of a kernel.
    pub(super) fn function(&self, kernel: &Kernel) -> Result<sys::CUfunction, Error> {
        let failed = |error: DriverError| Error::Driver(error.to_string());
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(kernel.name) {
            return Ok(*function);
        }
        let name = CString::new(kernel.name).map_err(|error| Error::Driver(error.to_string()))?;
        // SAFETY: the module is loaded as long as `self` is there.
        let function = unsafe { module::get_function(self.module, name) }.map_err(failed)?;
        if kernel.shared > 0 {
            let dynamic =
                sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of the module.
            unsafe {
                result::function::set_function_attribute(function, dynamic, kernel.shared as i32)
            }
            .map_err(failed)?;
        }
        functions.insert(kernel.name, function);
        Ok(function)
    }

    /// How many blocks of a kernel fit on a multiprocessor.
    fn blocks(&self, kernel: &Kernel, threads: u32) -> Result<i32, Error> {
        let function = self.function(kernel)?;
        // SAFETY: the function is of the module.
        unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                function,
                threads as i32,
                kernel.shared as usize,
            )
        }
        .map_err(|error| Error::Driver(error.to_string()))
    }
}

/// Memory that was freed stays with this process, for the next buffer: all that is freed was wiped.
fn keep_memory(context: &CudaContext) -> Result<(), DriverError> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    let mut all = u64::MAX;
    let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the device is that of the context, whose pool lives as long as it; the attribute is a number of 64 bits.
    unsafe {
        let pool = result::device::get_default_mem_pool(context.cu_device())?;
        result::mem_pool::set_attribute(pool, threshold, (&raw mut all).cast())
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let _ = self.context.bind_to_thread();
        // SAFETY: devices that launched something have waited for it, and are gone.
        let _ = unsafe { module::unload(self.module) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h100() -> Facts {
        Facts {
            name: "NVIDIA H100 80GB HBM3".into(),
            driver: 13000,
            capability: [9, 0],
            units: 132,
            clock_khz: 1_980_000,
            shared: 227 * 1024,
            cooperative: true,
            memory: 85_000_000_000,
        }
    }

    #[test]
    fn a_gpu_that_lacks_something_says_what() {
        assert_eq!(h100().suit(), Ok(()));
        let a100 = Facts {
            shared: 163 * 1024,
            ..h100()
        };
        assert_eq!(a100.suit(), Ok(()));
        // What GPUs of compute capability 8.6, 8.9 and 12.0 have.
        let l40 = Facts {
            shared: 99 * 1024,
            ..h100()
        };
        let (has, needs) = (99 * 1024, 128 * 1024);
        assert_eq!(l40.suit(), Err(Lack::Shared { has, needs }));
        let old = Facts {
            driver: 12080,
            ..h100()
        };
        let said = old.suit().map_err(|lack| lack.to_string());
        assert_eq!(
            said,
            Err("its driver is for CUDA 12.8, and the kernels need 13.0: install a driver of release 580 or later".into())
        );
        let apart = Facts {
            cooperative: false,
            ..h100()
        };
        assert_eq!(apart.suit(), Err(Lack::Cooperative));
    }

    #[test]
    fn threads_of_a_block_are_whole_warps() {
        for threads in [32, 256, 1024] {
            assert_eq!(threads_of(&threads.to_string()), Ok(threads));
        }
        for said in ["", "0", "31", "33", "1056", "many", "-32"] {
            let threads = threads_of(said);
            assert!(matches!(threads, Err(Absent::Threads { .. })), "{said}");
        }
    }

    /// The version that the code needs is that of the compiler.
    #[test]
    fn code_is_made_for_the_version_that_is_asked_for() {
        let script = include_str!("../../../../scripts/cuda.sh");
        let (major, minor) = (Facts::CUDA / 1000, Facts::CUDA % 1000 / 10);
        assert!(
            script.contains(&format!("=={major}.{minor}.")),
            "scripts/cuda.sh has another compiler"
        );
    }
}
