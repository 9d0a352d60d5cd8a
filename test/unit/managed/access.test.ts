import { describe, expect, it } from 'vitest';
import { judgeKubeconfig, renewalOf } from '../../../operator/controllers/managed/access.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const inMinutes = (minutes: number) => new Date(+NOW + minutes * 60_000).toISOString();
const ENDPOINT = 'https://one.cloud.invalid';
const text = writeKubeconfigText({ server: ENDPOINT, ca: 'x', token: 't', name: 'one', user: 'u' });

describe('a stored kubeconfig', () => {
  it.each([
    ['is missing', undefined, 'cannot'],
    ['does not end', { kubeconfig: text }, 'good'],
    ['is young', { kubeconfig: text, expiresAt: inMinutes(60), renewAt: inMinutes(40) }, 'good'],
    ['is old', { kubeconfig: text, expiresAt: inMinutes(10), renewAt: inMinutes(-1) }, 'due'],
    ['has ended', { kubeconfig: text, expiresAt: inMinutes(0), renewAt: inMinutes(-20) }, 'cannot'],
    ['leads elsewhere', { kubeconfig: text.replace('one.cloud', 'two.cloud') }, 'cannot'],
    ['is none', { kubeconfig: 'hello' }, 'cannot'],
    [
      'names a file',
      { kubeconfig: text.replace(/certificate-authority-data: .*/, `certificate-authority: ${import.meta.filename}`) },
      'cannot',
    ],
    ['runs a plugin', { kubeconfig: text.replace('token: t', 'exec: {command: steal}') }, 'cannot'],
  ] as const)('that %s', (_what, stored, verdict) => {
    expect(judgeKubeconfig(stored, `${ENDPOINT}/`, NOW)).toBe(verdict);
  });

  it('is renewed with a fifth of its life left', () => {
    expect(renewalOf({ kubeconfig: text, expiresAt: inMinutes(15) }, NOW)?.toISOString()).toBe(inMinutes(12));
    expect(renewalOf({ kubeconfig: text }, NOW)).toBeUndefined();
  });
});
