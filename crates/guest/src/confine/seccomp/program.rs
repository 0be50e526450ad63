//! Programs of classic BPF, an instruction at a time.

use seccompiler::{BpfProgram, sock_filter};

/// One instruction of classic BPF; see linux/bpf_common.h for the codes.
pub(super) fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Codes of `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP | BPF_JA`, `BPF_JMP | BPF_JEQ`,
/// `BPF_JMP | BPF_JGE`, `BPF_RET`.
pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP: u16 = 0x05;
pub(super) const IF_EQUAL: u16 = 0x15;
pub(super) const IF_AT_LEAST: u16 = 0x35;
pub(super) const RETURN: u16 = 0x06;

/// Stands for no answer: what comes behind the program decides.
pub(super) const ASK_FURTHER: u32 = u32::MAX;

/// Lets what a program leaves to others go on behind it.
pub(super) fn leave_at_end(program: &mut BpfProgram) {
    let end = program.len();
    for (at, step) in program.iter_mut().enumerate().filter(|(_, step)| step.code == JUMP) {
        step.k = u32::try_from(end - at - 1).expect("the program is short");
    }
}

/// Adds the search among runs for the answer of the last one that has begun.
pub(super) fn search(runs: &[(u32, u32)], program: &mut BpfProgram) {
    match runs {
        [(_, ASK_FURTHER)] => return program.push(instruction(JUMP, 0, 0, 0)),
        [(_, answer)] => return program.push(instruction(RETURN, 0, 0, *answer)),
        _ => {}
    }
    let (lower, upper) = runs.split_at(runs.len() / 2);
    let at = program.len();
    program.push(instruction(IF_AT_LEAST, 0, 0, upper[0].0));
    search(lower, program);
    // A run takes at most two steps, and there are fewer than 256 of them.
    program[at].jt = u8::try_from(program.len() - at - 1).expect("half of the runs is near");
    search(upper, program);
}

/// What a program of loads, jumps and returns answers, by the words of `struct
/// seccomp_data`. `None`: it leaves that to what comes behind it.
#[cfg(test)]
pub(super) fn outcome(program: &[sock_filter], word: &dyn Fn(u32) -> u32) -> Option<u32> {
    let (mut at, mut value) = (0, 0);
    while at < program.len() {
        let step = &program[at];
        at += 1;
        let holds = match step.code {
            LOAD => {
                value = word(step.k);
                continue;
            }
            IF_EQUAL => value == step.k,
            IF_AT_LEAST => value >= step.k,
            JUMP => {
                at += usize::try_from(step.k).unwrap();
                continue;
            }
            _ => return Some(step.k),
        };
        at += usize::from(if holds { step.jt } else { step.jf });
    }
    assert_eq!(at, program.len());
    None
}
