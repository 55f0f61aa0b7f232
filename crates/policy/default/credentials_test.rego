package interlock_test

scopes := {"cred-db": {"environments": ["prod"]}, "cred-dev": {"environments": ["dev", "none"]}}

with_credential(profile, name) := decided if {
	document := changed({
		"workflow": {"profile": profile, "mode": "critical_only"},
		"step": {"credentials": [name]},
	})
	decided := data.interlock.decision with input as document with data.config.credentials as scopes
}

test_a_credential_is_used_where_it_belongs if {
	with_credential(null, "cred-dev").verdict == "allow"
	with_credential("dev-flex", "cred-dev").verdict == "allow"
}

test_a_credential_is_not_used_elsewhere if {
	denied := with_credential("dev-flex", "cred-db")
	denied.verdict == "deny"
	{reason.rule | some reason in denied.reasons} == {"credential_scope"}
}

test_production_uses_known_credentials_only if {
	denied := with_credential("prod-standard", "cred-new")
	{reason.rule | some reason in denied.reasons} == {"credential_unknown"}
	denied.verdict == "deny"
}

test_elsewhere_an_unknown_credential_is_asked_about if {
	with_credential("dev-flex", "cred-new").verdict == "needs_approval"
}

test_a_worker_acts_in_its_own_environments if {
	staging := {"workflow": {"profile": "staging-standard"}}
	serves := changed(object.union(staging, {"worker": {"environments": ["staging"]}}))
	verdict_on(serves) == "allow"
	strange := changed(object.union(staging, {"worker": {"environments": ["dev"]}}))
	rules_on(strange) == {"worker_environment"}
	anywhere := changed(object.union(staging, {"worker": {"environments": ["*"]}}))
	verdict_on(anywhere) == "allow"
}

test_a_worker_without_environments_acts_in_none if {
	staging := {"workflow": {"profile": "staging-standard"}}
	strange := changed(object.union(staging, {"worker": {"environments": []}}))
	rules_on(strange) == {"worker_environment"}
}
