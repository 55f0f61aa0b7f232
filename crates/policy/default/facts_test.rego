package interlock_test

environment_of(profile) := found if {
	document := changed({"workflow": {"profile": profile}})
	found := data.interlock.environment with input as document
}

test_the_profile_says_where_it_happens if {
	environment_of(null) == "none"
	environment_of("prod-critical") == "prod"
	environment_of("prod-standard") == "prod"
	environment_of("staging-standard") == "staging"
	environment_of("dev-flex") == "dev"
}

test_a_profile_that_is_not_placed_counts_as_production if {
	environment_of("ours") == "unknown"
	ours := changed({"workflow": {"profile": "ours"}})
	data.interlock.production with input as ours
}

test_outside_production_is_outside if {
	staging := changed({"workflow": {"profile": "staging-standard"}})
	not data.interlock.production with input as staging
	not data.interlock.production with input as plain
}

test_the_larger_reach_counts if {
	known := command(["/usr/bin/uptime"], {"action": {"blast_radius": "low"}})
	data.interlock.reach == 1 with input as known
	declared := command(["/usr/bin/uptime"], {"action": {"blast_radius": "high"}})
	data.interlock.reach == 3 with input as declared
	unknown := command(["/opt/thing"], {"action": {"blast_radius": "low"}})
	data.interlock.reach == 3 with input as unknown
}
