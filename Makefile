# Two commands: `make run` sets up and compares what works on this machine; `make test` sets up and runs all tests.

.PHONY: run test test-long test-chaos test-machines test-slurm test-kubernetes test-virtualbox test-kvm check bench clean docs site

run:
	@scripts/bootstrap run
	@.venv/bin/vtax run quick --available

test:
	@scripts/bootstrap test
	@scripts/check
	@scripts/tests browser -q -n auto -m integration tests/browser
	@scripts/tests integration -q -n 2 --dist loadfile -m 'integration and not long and not alone' tests/integration
	@scripts/tests alone -q -m 'alone and not long' tests/integration

test-long:
	@scripts/bootstrap test
	@.venv/bin/pytest -q -m 'long and not kubernetes'

# KILLS: of each scenario, fewer where one takes long; SEED repeats the random choices of an earlier run; LIMIT_S: when a
# scenario begins nothing new; ONLY: tests by name, so that several runs add up in the file LOG.
test-chaos:
	@scripts/bootstrap test
	@VTAX_CHAOS_KILLS=$(or $(KILLS),30) VTAX_CHAOS_SEED=$(SEED) VTAX_CHAOS_SECONDS=$(or $(LIMIT_S),inf) \
	VTAX_CHAOS_LOG=$(LOG) .venv/bin/pytest -q -s tests/integration/chaos $(if $(ONLY),-k '$(ONLY)')
	@$(if $(LOG),.venv/bin/python tests/integration/chaos/table.py $(LOG))

# What `make test` has no time for: machines that freeze or are cut off, with a Docker daemon each.
test-machines:
	@scripts/bootstrap test
	@.venv/bin/pytest -q tests/integration/test_machines.py tests/integration/test_spread.py \
	  tests/integration/test_machines_long.py tests/integration/test_spread_long.py tests/integration/test_nfs.py

# A real Slurm with two nodes, from Debian trixie: its root file system is made once, in about two minutes.
test-slurm:
	@scripts/bootstrap test
	@.venv/bin/pytest -q tests/integration/test_slurm.py tests/integration/test_slurm_limits.py

# A real Kubernetes with two nodes: built with Go 1.24 or newer while the rest is set up, once, in about ten minutes, and
# kept in vtax-kubernetes of the user's cache (5 GB).
test-kubernetes:
	@scripts/bootstrap run
	@PYTHONPATH=tests .venv/bin/python -m integration.kubernetes_build & building=$$!; \
	  scripts/bootstrap test && wait $$building && .venv/bin/pytest -q tests/integration/test_kubernetes*.py

test-virtualbox:
	@scripts/bootstrap test
	@.venv/bin/pytest -q tests/integration/virtualbox_in_qemu.py

test-kvm:
	@scripts/bootstrap test
	@.venv/bin/pytest -q tests/integration/kvm_in_qemu.py

check:
	@scripts/bootstrap run
	@scripts/check

bench:
	@scripts/bootstrap test
	@.venv/bin/python bench/bench.py
	@.venv/bin/python bench/analysis.py
	@.venv/bin/python bench/report.py

docs:
	@.venv/bin/python scripts/metrics-reference
	@.venv/bin/python scripts/audit-reference
	@.venv/bin/python scripts/command-reference

# The documentation as a site in build/site, which opens without a server; a link that leads nowhere is an error.
site:
	@scripts/bootstrap run
	@scripts/site

clean:
	@.venv/bin/vtax clean
