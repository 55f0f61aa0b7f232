//! What a program says that it has cost, seen from the command line.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::harness::Up;

const PAYS: &str = "#!/bin/sh
echo '{\"micros\": 1500000, \"output_tokens\": 7}' >> \"$INTERLOCK_COST_FILE\"
echo '{}'
";
const COSTLY: &str = "name: costly
limits: { spend: 2, unit: credits }
steps:
- { id: a, task: pay, effect: idempotent }
- { id: b, task: pay, effect: idempotent }
- { id: c, task: pay, effect: idempotent }
";

struct PayingWorker(Child);

impl Drop for PayingWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_program_has_cost_adds_up_and_ends_the_run_at_the_limit() {
    let up = Up::start(&["--no-demo"]);
    let program = up.file("pay.sh", PAYS);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let applied = up.run(&["workflow", "apply", &up.file("costly.yaml", COSTLY)]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let log = std::fs::File::create(up.path("worker.log")).unwrap();
    let task = format!("pay={program}");
    let mut command = up.command();
    let child = command.args(["worker", "--task", &task]).stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let _worker = PayingWorker(child);

    let ended = up.run(&["run", "start", "costly", "--wait"]);
    assert_ne!(ended.code, 0, "{ended:?}");
    let shown = up.run(&["run", "show", "latest"]).out;
    for part in ["3 credits", "0 in, 14 out"] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
    let attempts = up.run(&["run", "attempts", "latest"]).out;
    assert!(attempts.contains("completed, cost 1.5 credits"), "{attempts}");
    let told = up.run(&["run", "show", "latest", "-o", "json"]).json();
    assert_eq!((&told["reason"], &told["spent_unit"]), (&json!("spend_exhausted"), &json!("credits")), "{told}");
    assert!(told.to_string().contains("has spent 3 of the 2 credits that `limits.spend` allows"), "{told}");
    let page = up.run(&["evidence", "export", told["run_id"].as_str().unwrap(), "--html"]);
    assert!(page.out.contains("<td>2</td><td>3000000 millionths of credits</td>"), "{page:?}");
}
