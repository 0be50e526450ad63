//! The guest program as bytes, to be embedded in whatever starts sandboxes.
//!
//! Owns nothing but the bytes: the program itself is this package's binary, which
//! the build script compiles statically. This library must never do anything.

// For fuzz targets alone the program's own modules are here too.
#![cfg_attr(
    fuzzing,
    expect(
        unsafe_code,
        dead_code,
        unused_imports,
        reason = "as in the program, of which one part is called"
    )
)]

#[cfg(fuzzing)]
mod bridge;
#[cfg(fuzzing)]
mod confine;
#[cfg(fuzzing)]
mod connection;
#[cfg(fuzzing)]
mod control;
#[cfg(fuzzing)]
mod exec;
#[cfg(fuzzing)]
mod files;
#[cfg(fuzzing)]
mod fuse;
#[cfg(fuzzing)]
pub mod fuzz;
#[cfg(fuzzing)]
mod limits;
#[cfg(fuzzing)]
mod listen;
#[cfg(fuzzing)]
mod network;
#[cfg(fuzzing)]
mod options;
#[cfg(fuzzing)]
mod paths;
#[cfg(fuzzing)]
mod role;
#[cfg(fuzzing)]
mod scratch;
#[cfg(fuzzing)]
mod serve;
#[cfg(fuzzing)]
mod sleep;
#[cfg(fuzzing)]
mod sys;
#[cfg(fuzzing)]
mod zygote;

/// The static program that runs as process 1 of a sandbox: an ELF executable with
/// no interpreter and no libraries of its own to find.
#[cfg(not(outrigger_inner))]
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/outrigger-guest"));

#[cfg(all(test, not(outrigger_inner)))]
mod tests {
    /// `PT_INTERP`, the program header that names a dynamic loader (ELF-64 specification).
    const PT_INTERP: u32 = 3;

    #[test]
    fn the_program_is_an_executable_without_an_interpreter() {
        let elf = super::PROGRAM;
        assert_eq!(&elf[..4], b"\x7fELF");
        let u16_at = |at: usize| u16::from_le_bytes(elf[at..at + 2].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap());
        let (table, size, count) = (u64_at(32) as usize, u16_at(54) as usize, u16_at(56) as usize);
        for index in 0..count {
            let at = table + index * size;
            let kind = u32::from_le_bytes(elf[at..at + 4].try_into().unwrap());
            assert_ne!(kind, PT_INTERP, "the guest must be static");
        }
    }
}
