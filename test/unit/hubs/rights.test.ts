import { describe, expect, it } from 'vitest';
import type { Identity } from '../../../operator/hubs/contract.ts';
import { KUEUE_RULES, rulesOf, WORKLOAD_RULES } from '../../../operator/hubs/rights.ts';

/** Whether these rules allow this, as Kubernetes reads them. */
const allows = (rules: Identity['rules'], group: string, resource: string, verb: string): boolean =>
  rules.some(
    ({ apiGroups = [], resources = [], verbs }) =>
      [group, '*'].some((one) => apiGroups.includes(one)) &&
      [resource, '*'].some((one) => resources.includes(one)) &&
      [verb, '*'].some((one) => verbs.includes(one)),
  );

it('the rights of a hub are all, as its documentation requires, unless the Hub restricts them', () => {
  expect(allows(rulesOf(undefined), 'rbac.authorization.k8s.io', 'clusterroles', 'escalate')).toBe(true);
  expect(rulesOf('Workloads')).toBe(WORKLOAD_RULES);
});

describe('the rights of workloads', () => {
  it.each<[boolean, string, string, string]>([
    [true, 'apps', 'deployments', 'patch'],
    [true, '', 'secrets', 'create'],
    [true, 'rbac.authorization.k8s.io', 'clusterroles', 'list'],
    [false, 'rbac.authorization.k8s.io', 'clusterroles', 'create'],
    [false, 'rbac.authorization.k8s.io', 'rolebindings', 'patch'],
    [false, '', 'serviceaccounts/token', 'create'],
    [false, '', 'users', 'impersonate'],
    [false, '', 'nodes', 'patch'],
    [false, '', 'namespaces', 'delete'],
    [false, '', 'pods/exec', 'create'],
    [false, '', 'pods/ephemeralcontainers', 'patch'],
    [false, 'apiextensions.k8s.io', 'customresourcedefinitions', 'create'],
    [false, 'admissionregistration.k8s.io', 'mutatingwebhookconfigurations', 'create'],
    [false, 'certificates.k8s.io', 'certificatesigningrequests/approval', 'update'],
  ])('%s: %s %s %s', (expected, group, resource, verb) => {
    expect(allows(WORKLOAD_RULES, group, resource, verb)).toBe(expected);
  });
});

describe('the rights of Kueue', () => {
  it.each<[boolean, string, string, string]>([
    [true, 'batch', 'jobs', 'create'],
    [true, 'batch', 'jobs/status', 'get'],
    [true, 'kubeflow.org', 'pytorchjobs', 'watch'],
    [true, 'ray.io', 'rayclusters', 'patch'],
    [true, 'kueue.x-k8s.io', 'workloads/status', 'patch'],
    [true, 'kueue.x-k8s.io', 'localqueues', 'list'],
    [false, 'kueue.x-k8s.io', 'localqueues', 'patch'],
    [false, 'batch', 'jobs', 'patch'],
    [false, '', 'secrets', 'list'],
    [false, '', 'serviceaccounts/token', 'create'],
    [false, '', 'pods/exec', 'create'],
    [false, '', 'nodes', 'list'],
    [false, 'rbac.authorization.k8s.io', 'clusterroles', 'list'],
  ])('%s: %s %s %s', (expected, group, resource, verb) => {
    expect(allows(KUEUE_RULES, group, resource, verb)).toBe(expected);
  });
});
