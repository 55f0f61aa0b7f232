pub struct ExecTask;
