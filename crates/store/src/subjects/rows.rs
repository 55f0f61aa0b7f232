use interlock_core::ids::RunId;

/// The run that holds a subject, and those that wait for it, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectLine {
    pub holder: Option<RunId>,
    pub queue: Vec<QueuedRun>,
}

/// A run that waits for its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedRun {
    pub run: RunId,
    /// The runs before it, the holder and earlier waiting ones, are to be canceled.
    pub cancels: bool,
}
