//! The one way to go through many files: by name, every file or those at one place, in pages of bounded size.
//!
//! # Errors
//!
//! Every function fails with [`DbError`] if the database does; a row that cannot be read is an error, and never left
//! out.

use archive_db::DbError;
use archive_model::{FileName, NodeKey, VolumeKey};

use super::{Admin, AdminRow};

/// The files that a walk goes through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WalkScope {
    /// Every file.
    #[default]
    Archive,
    /// The files at a node, and the files on their way to it.
    Node(NodeKey),
    /// The files at a volume, and the files on their way to its node, which may come to the volume.
    Volume(VolumeKey),
}

/// A walk over files by name. A walk can be left after any file, and gone on with later: changes to names behind it are
/// not seen, changes to names before it are. Between pages it holds nothing but the last name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileWalk {
    scope: WalkScope,
    after: Option<FileName>,
}

/// The size at which a page ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// The most rows that are looked at.
    pub rows: usize,
    /// The most rows that are picked.
    pub picks: usize,
}

/// The picks of some rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkPage<T> {
    /// The picks, in the order of the names.
    pub picked: Vec<T>,
    /// Whether no row follows.
    pub is_last: bool,
}

impl FileWalk {
    /// Begins at the first file.
    pub const fn over_scope(scope: WalkScope) -> Self {
        Self { scope, after: None }
    }

    /// Begins behind a name.
    #[must_use]
    pub fn after_name(self, after: Option<FileName>) -> Self {
        Self { after, ..self }
    }

    /// Returns the last name that was looked at.
    pub const fn cursor(&self) -> Option<&FileName> {
        self.after.as_ref()
    }

    /// Shows the next rows to `take` for as long as it returns `true`. Returns whether no row follows. The last row
    /// that was shown counts as looked at.
    pub fn walk_each(
        &mut self,
        admin: &Admin,
        mut take: impl FnMut(AdminRow) -> bool,
    ) -> Result<bool, DbError> {
        let from = self.after.clone();
        for row in admin.files_in(&self.scope, from.as_ref())? {
            let row = row?;
            self.after = Some(row.record.name.clone());
            if !take(row) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks at the next rows, and returns the page of the values that `pick` makes of them.
    pub fn next_page<T>(
        &mut self,
        admin: &Admin,
        limits: PageLimits,
        mut pick: impl FnMut(AdminRow) -> Option<T>,
    ) -> Result<WalkPage<T>, DbError> {
        let mut page = WalkPage {
            picked: Vec::new(),
            is_last: true,
        };
        let from = self.after.clone();
        for (count, row) in admin.files_in(&self.scope, from.as_ref())?.enumerate() {
            let row = row?;
            if count >= limits.rows || page.picked.len() >= limits.picks {
                page.is_last = false;
                break;
            }
            self.after = Some(row.record.name.clone());
            page.picked.extend(pick(row));
        }
        Ok(page)
    }
}

impl Admin {
    /// Returns the files of a scope, sorted by name, from the first name after `after` on. Damage ends the rows with an
    /// error.
    pub fn files_in(
        &self,
        scope: &WalkScope,
        after: Option<&FileName>,
    ) -> Result<Box<dyn Iterator<Item = Result<AdminRow, DbError>> + '_>, DbError> {
        let (node, volume) = match scope {
            WalkScope::Archive => return Ok(Box::new(self.list_files(after)?)),
            WalkScope::Node(node) => (node.clone(), None),
            WalkScope::Volume(VolumeKey {
                replica,
                node,
                volume,
            }) => {
                let replica = replica.clone();
                let node = node.clone();
                (NodeKey { replica, node }, Some(volume.as_str()))
            }
        };
        let scope = scope.clone();
        if !self.is_counted() {
            // The index is compared with the rows while they are counted: nobody relies on it before.
            let rows = self.list_files(after)?;
            return Ok(Box::new(rows.filter(move |row| match row {
                Ok(row) => scope.has_record(&row.record),
                Err(_) => true,
            })));
        }
        let names = self.at_one_moment(|| self.places.list_names(&node, volume, after))?;
        // A row is read when its turn comes: the file may have moved since its name was.
        Ok(Box::new(names.filter_map(move |name| {
            let row = name.and_then(|name| self.file(&name));
            row.map(|row| row.filter(|row| scope.has_record(&row.record)))
                .transpose()
        })))
    }
}
