//! Commands that run to their end: output, exit, secrets, limits, the attestation.

use std::time::Duration;

use crate::harness::{PROBE, permit, probe, sandbox, told};
use interlock_sandbox::{LandlockStatus, Outcome, Profile, Request, SandboxError, SecretValue};

#[tokio::test]
async fn ordinary_programs_run_under_every_profile() {
    let sandbox = sandbox().await;
    for profile in Profile::ALL {
        for (argv, expected) in [
            (vec!["/usr/bin/id", "-un"], "sandbox\n"),
            (vec!["/bin/sh", "-c", "echo out; ls /usr/bin | head -n 1000 | wc -l | grep -q . && echo piped; pwd"], ""),
            (vec!["/usr/bin/printenv", "HOME"], "/tmp\n"),
            (
                vec![
                    "/usr/bin/python3",
                    "-c",
                    "import threading,os;t=threading.Thread(target=lambda:print(os.getpid()>1));t.start();t.join()",
                ],
                "True\n",
            ),
        ] {
            if !std::path::Path::new(argv[0]).exists() {
                continue;
            }
            let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
            let told = told(sandbox.run(Request::new(permit(*profile, argv.clone()))).await.unwrap()).await;
            assert_eq!(told.ended.outcome, Outcome::Exited { code: 0 }, "{profile} {argv:?}: {told:?}");
            if expected.is_empty() {
                let folder = if *profile == Profile::StagingStandard { "/work" } else { "/tmp" };
                assert_eq!(told.stdout, format!("out\npiped\n{folder}\n"), "{profile}");
            } else {
                assert_eq!(told.stdout, expected, "{profile} {argv:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_end_tells_code_signal_time_memory_and_attestation() {
    let sandbox = sandbox().await;
    for profile in Profile::ALL {
        let told_code = told(sandbox.run(probe(*profile, &["code", "3"])).await.unwrap()).await;
        assert_eq!(told_code.ended.outcome, Outcome::Exited { code: 3 }, "{profile}");
        let told_signal = told(sandbox.run(probe(*profile, &["signal", "15"])).await.unwrap()).await;
        assert_eq!(told_signal.ended.outcome, Outcome::Signaled { signal: 15 }, "{profile}");

        let ended = told(sandbox.run(probe(*profile, &["memory", "33554432"])).await.unwrap()).await.ended;
        assert!(ended.peak_memory_bytes >= 32 << 20 && ended.peak_memory_bytes < 256 << 20, "{profile}: {ended:?}");
        assert!(ended.duration > Duration::ZERO);
        let seen = ended.attestation;
        assert_eq!((seen.profile.as_str(), seen.no_new_privileges, seen.seccomp_mode), (profile.name(), true, 2));
        assert_eq!(seen.capabilities, "0000000000000000");
        let filters = match profile {
            Profile::ProdCritical => 5,
            Profile::ProdStandard | Profile::StagingStandard => 4,
            Profile::DevFlex => 3,
        };
        assert_eq!(seen.seccomp_filters, filters, "{profile}");
        assert_eq!(seen.landlock, LandlockStatus::FullyEnforced, "{profile}");
        assert_eq!(seen.uid, 1000);
        for namespace in profile.spec().namespaces {
            let own = std::fs::read_link(format!("/proc/self/ns/{}", namespace.kind())).unwrap();
            let inside = format!("{}:[{}]", namespace.kind(), seen.namespaces[namespace.kind()]);
            assert_ne!(own.to_string_lossy(), inside, "{profile}");
        }
        let limits = profile.spec().limits;
        assert!(seen.limits["open_files"] <= limits.open_files && seen.limits["processes"] <= limits.pids, "{seen:?}");
        assert_eq!(seen.limits["core_bytes"], 0, "{profile}");
        assert_eq!(seen.cgroups.len(), 3, "{profile}: {seen:?}");
    }
}

#[tokio::test]
async fn output_is_cut_at_the_limit_with_a_mark_and_memory_stays() {
    let sandbox = sandbox().await;
    let limit = Profile::ProdCritical.spec().limits.output_bytes;
    let before = resident_bytes();
    let told = told(sandbox.run(probe(Profile::ProdCritical, &["pour", "200000000"])).await.unwrap()).await;
    assert_eq!(told.ended.outcome, Outcome::Exited { code: 0 });
    assert_eq!(told.stdout.len() as u64, limit);
    assert!(told.status.contains("output cut at 1048576 bytes"), "{}", told.status);
    assert_eq!(told.ended.output.bytes, limit);
    assert_eq!(told.ended.output.cut_bytes, 200_000_000 - limit);
    assert!(told.ended.limits_met.contains(&"output"));
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
}

#[tokio::test]
async fn a_reader_that_waits_holds_the_command_up_and_not_the_memory() {
    let sandbox = sandbox().await;
    let mut running = sandbox.run(probe(Profile::StagingStandard, &["pour", "8000000"])).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut bytes = 0;
    while let Some(chunk) = running.next().await {
        bytes += chunk.bytes.len();
    }
    assert_eq!(bytes, 8_000_000);
    assert_eq!(running.end().await.outcome, Outcome::Exited { code: 0 });
}

#[tokio::test]
async fn output_arrives_while_it_happens() {
    let sandbox = sandbox().await;
    // A command that goes on for hours: whatever is read of it was not kept back until its end.
    let mut running = sandbox.run(probe(Profile::ProdStandard, &["drip", "100000", "200"])).await.unwrap();
    let mut chunks = Vec::new();
    for _ in 0..4 {
        chunks.push(running.next().await.unwrap());
    }
    assert!(chunks.windows(2).all(|pair| pair[0].at <= pair[1].at), "{chunks:?}");
    running.cancel();
    assert_eq!(running.end().await.outcome, Outcome::Canceled);
}

#[tokio::test]
async fn secrets_arrive_by_file_and_are_not_printed() {
    let sandbox = sandbox().await;
    let secret = |text: &str| SecretValue::new(text).unwrap();
    for profile in Profile::ALL {
        let request = probe(*profile, &["cat", "/run/secrets/token", "/run/secrets/db.key"])
            .secret_file("token", secret("file-secret-1"))
            .secret_file("db.key", secret("file-secret-2"))
            .redact(secret("never-given-3"));
        let told = told(sandbox.run(request).await.unwrap()).await;
        assert_eq!(told.ended.outcome, Outcome::Exited { code: 0 }, "{profile}: {told:?}");
        assert_eq!(told.stdout, "[redacted][redacted]", "{profile}");
    }
}

#[tokio::test]
async fn a_command_has_no_descriptor_environment_or_order_of_the_workers() {
    let sandbox = sandbox().await;
    let request = probe(Profile::ProdStandard, &["environment"]).env("GIVEN", "yes");
    let told_env = told(sandbox.run(request).await.unwrap()).await;
    let mut names: Vec<&str> = told_env.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "LANG", "PATH"]);
    let told_fds = told(sandbox.run(probe(Profile::ProdStandard, &["descriptors"])).await.unwrap()).await;
    assert_eq!(told_fds.stdout.trim(), "0 1 2 3", "the fourth is the list itself");
    let told_order = told(sandbox.run(probe(Profile::ProdStandard, &["arguments"])).await.unwrap()).await;
    assert!(told_order.stdout.contains("--sandbox-shim"), "{}", told_order.stdout);
    assert!(!told_order.stdout.contains("ro-bind") && !told_order.stdout.contains(PROBE), "{}", told_order.stdout);
}

#[tokio::test]
async fn work_folders_are_the_callers_or_fresh() {
    let sandbox = sandbox().await;
    let work = std::env::temp_dir().join(format!("interlock-work-{}", std::process::id()));
    std::fs::create_dir(&work).unwrap();
    std::fs::set_permissions(&work, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let write = |profile| {
        let argv = ["/bin/sh", "-c", "echo kept > /work/a; cat /work/a"].map(str::to_owned);
        Request::new(permit(profile, argv.to_vec()))
    };
    for profile in [Profile::ProdStandard, Profile::DevFlex] {
        let told = told(sandbox.run(write(profile).work(&work)).await.unwrap()).await;
        assert_eq!((told.stdout.as_str(), told.stderr.as_str()), ("kept\n", ""), "{profile}");
        assert_eq!(std::fs::read_to_string(work.join("a")).unwrap(), "kept\n");
        std::fs::remove_file(work.join("a")).unwrap();
    }
    let told_fresh = told(sandbox.run(write(Profile::StagingStandard)).await.unwrap()).await;
    assert_eq!(told_fresh.stdout, "kept\n");
    assert!(!work.join("a").exists());
    let told_none = told(sandbox.run(write(Profile::ProdCritical)).await.unwrap()).await;
    assert_eq!(told_none.stdout, "");
    assert!(matches!(sandbox.run(write(Profile::ProdCritical).work(&work)).await, Err(SandboxError::Invalid(_))));
    std::fs::remove_dir_all(&work).unwrap();
}

#[tokio::test]
async fn a_command_that_cannot_be_executed_was_not_started() {
    let sandbox = sandbox().await;
    // Judged on the host, but not shown inside.
    let request =
        Request::new(permit(Profile::ProdStandard, vec![PROBE.to_owned(), "code".to_owned(), "0".to_owned()]));
    let error = sandbox.run(request).await.unwrap_err();
    assert!(matches!(&error, SandboxError::NotStarted(why) if why.contains("is not in the sandbox")), "{error}");

    // Another file at the same path than the one that was judged.
    let folder = std::env::temp_dir().join(format!("interlock-swap-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let tool = folder.join("tool");
    std::fs::copy("/usr/bin/true", &tool).unwrap();
    let request = Request::new(permit(Profile::DevFlex, vec![tool.to_string_lossy().into_owned()])).read_only(&folder);
    std::fs::copy("/usr/bin/false", folder.join("other")).unwrap();
    std::fs::rename(folder.join("other"), &tool).unwrap();
    let error = sandbox.run(request).await.unwrap_err();
    assert!(matches!(&error, SandboxError::NotStarted(why) if why.contains("another file")), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn more_memory_than_allowed_ends_the_command_and_is_named() {
    let sandbox = sandbox().await;
    let bytes = (Profile::ProdCritical.spec().limits.memory_bytes + (64 << 20)).to_string();
    let ended = told(sandbox.run(probe(Profile::ProdCritical, &["memory", &bytes])).await.unwrap()).await.ended;
    assert!(matches!(ended.outcome, Outcome::Signaled { signal: 9 } | Outcome::Killed), "{ended:?}");
    assert!(ended.limits_met.contains(&"memory"), "{ended:?}");
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
