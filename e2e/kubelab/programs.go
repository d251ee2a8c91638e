package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// program is one real program of a control plane, linked into this binary and run
// by executing the binary again: what the tests talk to is what clusters run.
type program struct {
	name string
	main func(args []string)
}

const (
	etcdProgram       = "etcd"
	apiserverProgram  = "kube-apiserver"
	controllerProgram = "kube-controller-manager"
)

var programs = []program{
	{etcdProgram, func(args []string) { etcdmain.Main(append([]string{etcdProgram}, args...)) }},
	{apiserverProgram, func(args []string) { run(apiserver.NewAPIServerCommand(), args) }},
	{controllerProgram, func(args []string) { run(controllermanager.NewControllerManagerCommand(), args) }},
}

func run(command *cobra.Command, args []string) {
	command.SetArgs(args)
	os.Exit(cli.Run(command))
}
