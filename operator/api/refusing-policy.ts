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

/** An admission policy with its binding that denies violations, and everything when it cannot be evaluated. */
export const refusingPolicy = (name: string, rules: Record<string, unknown>): KubeObject[] =>
  policy(name, 'Fail', 'Deny', rules);

/** An admission policy with its binding that only warns of violations. */
export const warningPolicy = (name: string, rules: Record<string, unknown>): KubeObject[] =>
  policy(name, 'Ignore', 'Warn', rules);
