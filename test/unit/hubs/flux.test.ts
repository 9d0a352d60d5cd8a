import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { fluxHub } from '../../../operator/hubs/flux.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { member, reader, textOf } from './hub-members.ts';

const SPEC: HubSpec = { type: 'Flux' };
const user = (kind: string, name: string, secret: string, metadata: object = {}): KubeObject => ({
  apiVersion: 'x/v1',
  kind,
  metadata: { name, namespace: 'shop', ...metadata },
  spec: { kubeConfig: { secretRef: { name: secret } } },
});
const leaving = member({ closed: 'Leaving' });
const look = (objects: Record<string, KubeObject[]>) => fluxHub.observe(reader(objects), undefined, leaving, SPEC);

it('the Flux hub stores a kubeconfig under the key that Flux reads', () => {
  const [wanted] = fluxHub.join(member(), SPEC, { users: [] }).flatMap(({ apply = [] }) => apply);
  expect(wanted?.object.metadata).toMatchObject({ name: 'shop--demo-kubeconfig', namespace: 'shop' });
  const text = textOf(wanted, 'value');
  expect(parseUntrustedKubeconfig(text)).toMatchObject({
    server: 'https://demo.example.com:6443',
    token: 'token-of-demo',
  });
});

it('the Flux hub writes the proxy for members into the kubeconfig', () => {
  const endpoint = { server: 'https://demo.example.com', ca: 'CA', proxyURL: 'http://proxy.example.com:3128' };
  const [wanted] = fluxHub.join(member({ endpoint }), SPEC, { users: [] }).flatMap(({ apply = [] }) => apply);
  const text = textOf(wanted, 'value');
  expect(text).toContain('proxy-url: http://proxy.example.com:3128');
});

describe('a cluster that leaves Flux', () => {
  it('counts Kustomizations and HelmReleases that name its Secret, and no others', async () => {
    const seen = await look({
      kustomizations: [
        user('Kustomization', 'web', 'shop--demo-kubeconfig'),
        user('Kustomization', 'other', 'shop--other-kubeconfig'),
        user('Kustomization', 'elsewhere', 'shop--demo-kubeconfig', { namespace: 'elsewhere' }),
      ],
      helmreleases: [user('HelmRelease', 'db', 'shop--demo-kubeconfig')],
    });
    expect(fluxHub.placements!(leaving, seen)).toEqual(['Kustomization shop/web', 'HelmRelease shop/db']);
  });

  it.each<[string, object, boolean]>([
    ['waits with its Secret for one that is being deleted', { deletionTimestamp: '2026-11-22T12:00:00Z' }, true],
    ['does not wait for one that nobody deletes', {}, false],
  ])('%s', async (_, metadata, waits) => {
    const seen = await look({ kustomizations: [user('Kustomization', 'web', 'shop--demo-kubeconfig', metadata)] });
    expect(fluxHub.leave(leaving, SPEC, seen)[0]?.waiting !== undefined).toBe(waits);
  });
});
