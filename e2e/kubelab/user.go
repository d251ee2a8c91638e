package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func userCommand(l *lab) *cobra.Command {
	var (
		allow   []string
		expired bool
		out     string
	)
	command := &cobra.Command{
		Use:   "user NAME",
		Short: "write a kubeconfig for a user who may do in the namespace only what is allowed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			if err := grant(cmd.Context(), c, l.namespace, args[0], allow); err != nil {
				return err
			}
			a, err := loadAuthority(l.dir)
			if err != nil {
				return err
			}
			until := time.Now().Add(certificateLife)
			if expired {
				until = time.Now().Add(-time.Hour)
			}
			return writeKubeconfig(a, c.config.Host, args[0], nil, until, out)
		},
	}
	command.Flags().StringArrayVar(&allow, "allow", nil, "GROUP/RESOURCES:VERBS, comma-separated; the core group is empty: /pods,services:get,list")
	command.Flags().BoolVar(&expired, "expired", false, "the user's certificate has expired")
	command.Flags().StringVar(&out, "out", "", "where to write the kubeconfig")
	command.MarkFlagRequired("out")
	return command
}

func grant(ctx context.Context, c *clients, namespace, user string, allow []string) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, a := range allow {
		group, rest, ok := strings.Cut(a, "/")
		resources, verbs, okVerbs := strings.Cut(rest, ":")
		if !ok || !okVerbs {
			return fmt.Errorf("--allow %s: want GROUP/RESOURCES:VERBS", a)
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","),
		})
	}
	roles := c.typed.RbacV1()
	if _, err := roles.Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := roles.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: user, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
	}, metav1.CreateOptions{})
	return err
}
