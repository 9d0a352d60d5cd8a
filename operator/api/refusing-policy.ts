import type { KubeObject } from './meta.ts';

const policy = (
  name: string,
  failurePolicy: 'Fail' | 'Ignore',
  action: 'Deny' | 'Warn',
  rules: Record<string, unknown>,
): KubeObject[] => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: { failurePolicy, ...rules },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: [action] },
  },
];

/** A policy with its binding: what it finds fault with is refused, and so is everything while it cannot be asked. */
export const refusing = (name: string, rules: Record<string, unknown>): KubeObject[] =>
  policy(name, 'Fail', 'Deny', rules);

/** A policy with its binding that only warns of what it finds fault with. */
export const warning = (name: string, rules: Record<string, unknown>): KubeObject[] =>
  policy(name, 'Ignore', 'Warn', rules);
