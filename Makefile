# Targets for people; `make help` lists them. Everything is built with Go alone.

SHELL   := /bin/bash
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The race detector needs a C compiler; without one the tests run all the same.
RACE := $(if $(shell command -v $${CC:-cc} 2>/dev/null),-race,)

MODULES := . e2e/lab e2e/faults

.PHONY: help build demo test lint unit scenarios scripts bench e2e-minikube clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/runbook and bin/runbook-lab
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/runbook ./cmd/runbook
	CGO_ENABLED=0 $(GO) build -C e2e/lab -trimpath -ldflags '-s -w' -o ../../bin/runbook-lab .

demo: build ## the main job end to end on a local lab: seed, dry run, apply, verify
	@bash e2e/demo.sh

test: lint unit scenarios scripts ## everything: static checks, unit tests, scenarios on real servers

lint: ## gofmt, go vet and staticcheck on every module
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt would change:"; echo "$$bad"; exit 1; }
	@set -e; for m in $(MODULES); do echo "lint $$m"; $(GO) vet -C $$m ./...; done
	@echo "staticcheck ."; $(GO) tool staticcheck ./...
	@staticcheck=$$($(GO) tool -n staticcheck); set -e; for m in $(filter-out .,$(MODULES)); do echo "staticcheck $$m"; (cd $$m && $$staticcheck ./...); done

unit: build ## tests of each package, under the race detector where there is a C compiler
	@[ -n "$(RACE)" ] || echo "no C compiler: running without the race detector"
	$(GO) test $(RACE) $$($(GO) list ./... | grep -v '^runbook/e2e')

scenarios: build ## scenario tests that drive the built programs, and the lab's own tests
	$(GO) test ./e2e/...
	$(GO) test -C e2e/lab ./...
	$(GO) test -C e2e/faults -parallel 12 ./...

scripts: build ## what of the minikube test can be checked without a cluster
	bash e2e/minikube/check.sh

e2e-minikube: build ## the whole of it on a real Milvus; needs minikube, not part of test
	$(MAKE) -C e2e/minikube all

bench: build ## ratios against other ways of doing the same, measured in one run
	$(GO) run -C bench . $(BENCHFLAGS)

clean: ## remove what was built
	rm -rf bin
