//! Mails as files, after the rules of a maildir: written in `tmp`, moved to `new` when complete.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// A folder of mails. Cheap to clone, as state for handlers is.
#[derive(Debug, Clone)]
pub(crate) struct Maildir {
    root: PathBuf,
}

impl Maildir {
    pub(crate) fn open(root: PathBuf) -> io::Result<Self> {
        for folder in ["tmp", "new", "cur"] {
            fs::create_dir_all(root.join(folder))?;
        }
        Ok(Self { root })
    }

    /// Delivers a mail. The file is in place in full or not at all, and still there after a power cut;
    /// one of the same name is replaced.
    pub(crate) fn deliver(&self, name: &str, run_no: u32, text: &str) -> io::Result<()> {
        // Every run writes to a file of its own: an earlier one may be at it still.
        let draft = self.root.join("tmp").join(format!("{name}.{run_no}"));
        let mut file = File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, self.new_mails().join(name))?;
        if cfg!(unix) {
            // The folder's own entry; elsewhere a folder cannot be opened as a file.
            File::open(self.new_mails())?.sync_all()?;
        }
        Ok(())
    }

    pub(crate) fn new_mails(&self) -> PathBuf {
        self.root.join("new")
    }
}
