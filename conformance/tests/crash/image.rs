//! A disk whose power can be cut: ext4 on a loop device, mounted where nobody else sees it.
//!
//! Needs mounts of one's own, see [`super::mounts`].

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::mounts::run;

/// `EXT4_IOC_SHUTDOWN`, `_IOR('X', 125, u32)`, in Python because an `ioctl` is unsafe code in Rust.
const SHUTDOWN: &str = "import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', int(sys.argv[2])))";

/// The journal is flushed, then nothing more reaches the disk.
pub(crate) const FLUSHED: &str = "1";

/// Nothing more reaches the disk, as when a plug is pulled.
pub(crate) const UNFLUSHED: &str = "2";

/// An ext4 file system of its own, where it is mounted, and where its `disk/` is to be seen as well.
pub(crate) struct Image {
    place: TempDir,
    disk: Option<PathBuf>,
}

impl Image {
    /// Makes a file system of this size, in memory where there is room, and mounts it.
    pub(crate) fn new(size: &str, options: &[&str]) -> Self {
        let image = Self {
            place: archive_bitarchive::testing::directory(),
            disk: None,
        };
        let file = image.file();
        run("truncate", &["-s", size, text(&file)]);
        run(
            "mkfs.ext4",
            &[&["-q", "-F"], options, &[text(&file)]].concat(),
        );
        std::fs::create_dir(image.mounted()).unwrap();
        image.mount();
        image
    }

    /// Returns a place that stays well when the disk fails.
    pub(crate) fn elsewhere(&self) -> PathBuf {
        self.place.path().join("machine")
    }

    /// Shows the `disk/` of this file system in a folder outside of it as well.
    pub(crate) fn show_disk_at(&mut self, folder: PathBuf) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(self.mounted().join("disk")).unwrap();
        self.unmount();
        self.disk = Some(folder);
        self.mount();
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.place.path().join("image")
    }

    pub(crate) fn mounted(&self) -> PathBuf {
        self.place.path().join("mounted")
    }

    pub(crate) fn mount(&self) {
        run(
            "mount",
            &["-o", "loop", text(&self.file()), text(&self.mounted())],
        );
        if let Some(disk) = &self.disk {
            let inside = self.mounted().join("disk");
            run("mount", &["--bind", text(&inside), text(disk)]);
        }
    }

    pub(crate) fn unmount(&self) {
        if let Some(disk) = &self.disk {
            run("umount", &[text(disk)]);
        }
        run("umount", &[text(&self.mounted())]);
    }

    pub(crate) fn cut_power(&self, how: &str) {
        cut_power(&self.mounted(), how);
    }
}

/// Cuts the power of the disk that is mounted here.
pub(crate) fn cut_power(mounted: &Path, how: &str) {
    run("python3", &["-c", SHUTDOWN, text(mounted), how]);
}

impl Drop for Image {
    fn drop(&mut self) {
        // The namespace would do it as well, but the directory goes before the namespace does.
        if !std::thread::panicking() {
            self.unmount();
        }
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
