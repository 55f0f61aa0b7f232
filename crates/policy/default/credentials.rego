# Credentials belong to environments. `data.config.credentials` says to which.
package interlock

deny contains {"rule": "credential_scope", "text": "the credential is not for this environment", "about": name} if {
	some name in input.step.credentials
	data.config.credentials[name]
	not environment in data.config.credentials[name].environments
}

deny contains {"rule": "credential_unknown", "text": "nobody has said that the credential is for production", "about": name} if {
	production
	some name in input.step.credentials
	not data.config.credentials[name]
}

ask contains {"rule": "credential_unknown", "text": "nobody has said where the credential belongs", "about": name} if {
	not production
	some name in input.step.credentials
	not data.config.credentials[name]
}

# The worker that is about to act must serve the environment: secrets are its environment's own. It is known when the worker
# asks again before the effect. `*` stands for all, and is what a worker without a certificate has.
deny contains {"rule": "worker_environment", "text": "the worker does not serve the environment", "about": environment} if {
	input.workflow.profile != null
	input.worker != null
	not environment in input.worker.environments
	not "*" in input.worker.environments
}
