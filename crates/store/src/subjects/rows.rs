use interlock_core::ids::RunId;

/// Who holds a subject and who waits for it, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectLine {
    pub holder: Option<RunId>,
    pub queue: Vec<QueuedRun>,
}

/// A run that waits for its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedRun {
    pub run: RunId,
    /// Whoever stands before it is to be canceled.
    pub cancels: bool,
}
