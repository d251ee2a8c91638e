package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func apiCommand(l *lab) *cobra.Command {
	signals := map[string]syscall.Signal{"pause": syscall.SIGSTOP, "resume": syscall.SIGCONT}
	return &cobra.Command{
		Use:       "api pause|resume",
		Short:     "make the API server accept connections and answer nothing, or go on",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"pause", "resume"},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(filepath.Join(l.dir, apiserverProgram+".pid"))
			if err != nil {
				return err
			}
			pid, err := strconv.Atoi(string(text))
			if err != nil {
				return err
			}
			return syscall.Kill(pid, signals[args[0]])
		},
	}
}

func deletePodCommand(l *lab) *cobra.Command {
	return &cobra.Command{
		Use:   "delete-pod NAME",
		Short: "delete a pod; its workload makes another one with another address",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			return c.typed.CoreV1().Pods(l.namespace).Delete(cmd.Context(), args[0], metav1.DeleteOptions{})
		},
	}
}

func scaleCommand(l *lab) *cobra.Command {
	return &cobra.Command{
		Use:   "scale DEPLOYMENT N",
		Short: "set the replicas of a Deployment",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			n, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil {
				return err
			}
			deployments := c.typed.AppsV1().Deployments(l.namespace)
			scale, err := deployments.GetScale(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return err
			}
			scale.Spec.Replicas = int32(n)
			_, err = deployments.UpdateScale(cmd.Context(), args[0], scale, metav1.UpdateOptions{})
			return err
		},
	}
}
