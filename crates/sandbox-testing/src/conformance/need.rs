//! What a case needs of a backend beside the port itself, and whether it is declared.

use outrigger_sandbox::{Capabilities, DiskLimit, Isolation, NetworkMode, Suspend};

/// What a case needs. A backend without it is let off the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// A POSIX shell with the usual small programs, and real processes.
    Programs,
    /// Users, permissions, devices and namespaces.
    Kernel,
    /// Limits of memory, processes and CPU.
    Resources,
    /// A limit of the disk.
    Disk,
    /// Commands that survive whoever asked for them.
    Reattach,
    /// Any suspension.
    Suspended,
    /// Suspension that keeps processes.
    Frozen,
    /// Suspension that keeps the disk alone.
    Cold,
    /// Snapshots.
    Snapshots,
    /// Terminals.
    Terminal,
    /// Trees that are served into it.
    Served,
    /// A way out.
    Network,
}

impl Need {
    /// Whether a case about it takes what others need to go on.
    pub(super) fn strains(self) -> bool {
        match self {
            Self::Resources | Self::Disk => true,
            Self::Programs
            | Self::Kernel
            | Self::Reattach
            | Self::Suspended
            | Self::Frozen
            | Self::Cold
            | Self::Snapshots
            | Self::Terminal
            | Self::Served
            | Self::Network => false,
        }
    }

    /// Why a backend with these capabilities is let off.
    pub(super) fn missing(self, declared: &Capabilities) -> Option<&'static str> {
        let real = declared.isolation != Isolation::Fake;
        let (there, why) = match self {
            Self::Programs => (real, "it runs no real programs"),
            Self::Kernel => (real, "no kernel stands behind it"),
            Self::Resources => (declared.resource_limits, "it declares no resource limits"),
            Self::Disk => (declared.disk_limit != DiskLimit::None, "it declares no disk limit"),
            Self::Reattach => (declared.reattach, "it declares no reattaching"),
            Self::Suspended => (!declared.suspend.is_empty(), "it declares no suspension"),
            Self::Frozen => {
                (declared.suspend.contains(&Suspend::Frozen), "it declares no frozen suspension")
            }
            Self::Cold => {
                (declared.suspend.contains(&Suspend::Cold), "it declares no cold suspension")
            }
            Self::Snapshots => (declared.snapshots, "it declares no snapshots"),
            Self::Terminal => (declared.terminal, "it declares no terminals"),
            Self::Served => (declared.live_mounts, "it declares no served trees"),
            Self::Network => {
                (declared.network.contains(&NetworkMode::Gate), "it declares no way out")
            }
        };
        (!there).then_some(why)
    }
}
