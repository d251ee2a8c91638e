package main

import (
	"github.com/spf13/cobra"

	"runbook/internal/instance"
	"runbook/internal/plan"
	"runbook/internal/secret"
	"runbook/steps"
)

// planFlags are the flags that say what a plan's parameters are.
type planFlags struct{ plan.Options }

func (f *planFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Set, "set", nil, "give a parameter its value: name=value (may be repeated, the last one wins)")
	cmd.Flags().StringArrayVar(&f.ValuesFiles, "values", nil, "read parameters from a YAML file of name: value (may be repeated, the last one wins)")
	_ = cmd.MarkFlagFilename("values", "yaml", "yml")
}

// planFiles completes the names of plan files.
func planFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// open loads a plan and describes its instance; nothing is dialled. Secrets are
// masked in all output from the moment they are read.
func (a *app) open(path string, f planFlags) (*plan.Plan, *instance.Instance, error) {
	p, err := plan.Load(path, steps.Language(), f.Options)
	if err != nil {
		return nil, nil, err
	}
	return p, a.reach(p.Instance.(instance.Settings)), nil
}

// reach describes an instance whose secrets are masked in all output: those in
// the plan from now on, the others from when they are read.
func (a *app) reach(s instance.Settings) *instance.Instance {
	for _, v := range secrets(s) {
		a.mask.Add(v.Literal)
	}
	i := instance.New(s, nil)
	i.OnSecret = a.mask.Add
	return i
}

func secrets(s instance.Settings) []secret.Value {
	return []secret.Value{s.Etcd.Password, s.ObjectStorage.AccessKeyID, s.ObjectStorage.SecretAccessKey}
}
