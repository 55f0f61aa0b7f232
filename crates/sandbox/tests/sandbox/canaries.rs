//! What a host has is found by trying, and a profile whose controls are not all there is refused by name.

use crate::escape::Delegated;
use crate::harness::{PROBE, options, permit, sandbox};
use interlock_sandbox::{Control, Profile, ProofState, Request, Sandbox, SandboxError, SandboxOptions};

fn id(profile: Profile) -> Request {
    Request::new(permit(profile, vec!["/usr/bin/id".to_owned()]))
}

#[tokio::test]
async fn this_host_has_every_control_and_says_how_it_was_seen() {
    let sandbox = sandbox().await;
    for control in Control::ALL {
        let proof = sandbox.proofs().get(*control).unwrap_or_else(|| panic!("{control} was not tried"));
        assert_eq!(proof.standing, ProofState::Proven, "{control}: {}", proof.evidence);
        assert!(!proof.evidence.is_empty(), "{control}");
    }
    for profile in Profile::ALL {
        assert_eq!(sandbox.offers(*profile), Ok(()));
    }
}

#[tokio::test]
async fn the_canaries_can_be_run_again() {
    let sandbox = sandbox().await;
    let again = sandbox.prove_again().await;
    for profile in Profile::ALL {
        assert_eq!(again.first_missing(profile.spec().required), None, "{profile}");
    }
    let missing = Sandbox::open(SandboxOptions { bwrap: Some("/nowhere/bwrap".into()), ..options() }).await.unwrap();
    assert!(!missing.prove_again().await.is_proven(Control::UserNamespace));
}

#[tokio::test]
async fn without_bubblewrap_every_profile_is_refused_and_says_what_is_missing() {
    let bwrap = Some("/nowhere/bwrap".into());
    let sandbox = Sandbox::open(SandboxOptions { bwrap, ..options() }).await.unwrap();
    for profile in Profile::ALL {
        let error = sandbox.run(id(*profile)).await.unwrap_err();
        let SandboxError::Refused { control, evidence, .. } = &error else { panic!("{error}") };
        assert_eq!(*control, Control::UserNamespace);
        assert!(evidence.contains("install bubblewrap"), "{evidence}");
        assert!(error.to_string().contains("user_namespace"), "{error}");
    }
}

#[tokio::test]
async fn without_cgroups_only_dev_flex_is_offered() {
    let cgroup = Some("/nowhere".to_owned());
    let sandbox = Sandbox::open(SandboxOptions { cgroup, ..options() }).await.unwrap();
    for profile in [Profile::ProdCritical, Profile::ProdStandard, Profile::StagingStandard] {
        let error = sandbox.run(id(profile)).await.unwrap_err();
        assert!(matches!(error, SandboxError::Refused { control: Control::CgroupPids, .. }), "{error}");
    }
    sandbox.run(id(Profile::DevFlex)).await.unwrap().end().await;
}

/// As in a container, whose worker has the number 1 each time it is started, and finds what the one before it has left.
#[test]
fn the_first_process_of_a_container_proves_every_control() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("interlock-container-{}", std::process::id()));
    for path in [&folder, &folder.join("interlock-sandbox-1-0")] {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    // Groups of its own: it does not see the processes whose groups it would find beside them.
    let delegated = Delegated::to(0);
    let output = std::process::Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", PROBE, "worker", "prove"])
        .env("TMPDIR", &folder)
        .env("INTERLOCK_TEST_CGROUP", format!("/{}", delegated.name))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for control in Control::ALL {
        assert!(said.contains(&format!("{control}: Proven")), "{said}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A bubblewrap that leaves an option out: the canary of what the option gives must notice.
#[tokio::test]
async fn a_control_that_is_silently_left_out_is_noticed() {
    for (option, control) in [
        ("--unshare-net", Control::NetworkNamespace),
        ("--unshare-ipc", Control::IpcNamespace),
        ("--unshare-cgroup", Control::CgroupNamespace),
        ("--disable-userns", Control::NestedNamespacesOff),
    ] {
        let bwrap = weak_bwrap(option);
        let sandbox = Sandbox::open(SandboxOptions { bwrap: Some(bwrap.clone()), ..options() }).await.unwrap();
        assert!(!sandbox.proofs().is_proven(control), "{option}: {:?}", sandbox.proofs().get(control));
        let error = sandbox.run(id(Profile::ProdCritical)).await.unwrap_err();
        assert!(matches!(error, SandboxError::Refused { .. }), "{option}: {error}");
        std::fs::remove_file(bwrap).unwrap();
    }
}

/// A process that has ended is in no cgroup any more, which must not be taken for the cause.
#[tokio::test]
async fn a_sandbox_that_dies_before_its_attestation_says_how_it_died() {
    // The canaries have their shim; a command has a program in its place that ends at once.
    let bwrap = fake_bwrap(
        "dying",
        "import json, os, sys\n\
         config = json.loads(os.pread(int(sys.argv[5]), 1 << 20, 0))\n\
         broken = ['/bin/sh', '-c', 'echo the shim is broken >&2; exit 7']\n\
         program = sys.argv[3:] if config['profile'] == 'canary' else broken\n\
         os.execv('/usr/bin/bwrap', ['bwrap', '--args', sys.argv[2], *program])\n",
    );
    let sandbox = Sandbox::open(SandboxOptions { bwrap: Some(bwrap.clone()), ..options() }).await.unwrap();
    for _ in 0..5 {
        let error = sandbox.run(id(Profile::ProdCritical)).await.unwrap_err();
        let SandboxError::NotAttested(why) = &error else { panic!("{error}") };
        assert_eq!(why, "the sandbox ended without an attestation (exit status 7): the shim is broken");
    }
    std::fs::remove_file(bwrap).unwrap();
}

/// Reads the options from the descriptor, drops one, and goes on.
fn weak_bwrap(option: &str) -> std::path::PathBuf {
    let also = if option == "--disable-userns" { "--assert-userns-disabled" } else { option };
    let script = format!(
        "import os, sys\n\
         words = os.fdopen(int(sys.argv[2]), 'rb').read().split(b'\\0')[:-1]\n\
         words = [word for word in words if word not in (b'{option}', b'{also}')]\n\
         os.execv('/usr/bin/bwrap', [b'bwrap', *words, *[word.encode() for word in sys.argv[3:]]])\n"
    );
    fake_bwrap(option, &script)
}

/// A program in Python that is started in the place of bubblewrap.
fn fake_bwrap(name: &str, script: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("interlock-weak-bwrap-{}-{name}", std::process::id()));
    std::fs::write(&path, format!("#!/usr/bin/python3\n{script}")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn commands_are_never_root() {
    let root = interlock_sandbox::Identity { uid: 0, gid: 0 };
    let opened = Sandbox::open(SandboxOptions { run_as: Some(root), ..options() }).await;
    if rustix::process::geteuid().is_root() {
        assert!(matches!(opened, Err(SandboxError::Setup(_))));
    } else {
        assert!(opened.is_ok(), "an ordinary worker's commands are what the worker is");
    }
}
