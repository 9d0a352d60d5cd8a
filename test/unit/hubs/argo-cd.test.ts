import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { argoCDHub } from '../../../operator/hubs/argo-cd.ts';
import type { Member, WantedObject } from '../../../operator/hubs/contract.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { member, reader, textOf } from './hub-members.ts';

const SPEC: HubSpec = { type: 'ArgoCD' };
const SKIP = 'argocd.argoproj.io/skip-reconcile';
const NOTHING = { secret: undefined, applications: [] };

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** What a join wants there, as it would be in the hub. */
const secretOf = (one: Member, spec = SPEC): WantedObject =>
  argoCDHub.join(one, spec, NOTHING).flatMap(({ apply = [] }) => apply)[0]!;
const live = (more: object = {}, one = member()): KubeObject => {
  const { object } = secretOf(one);
  return { ...object, metadata: { ...object.metadata, ...more } };
};
const app = (name: string, destination: object, more: object = {}): KubeObject => ({
  apiVersion: 'argoproj.io/v1alpha1',
  kind: 'Application',
  metadata: { name, namespace: 'argocd', ...more },
  spec: { destination },
});
const look = (objects: Record<string, KubeObject[]>, one: Member, spec = SPEC) =>
  argoCDHub.observe(reader(objects), undefined, one, spec);

describe('the Secret of a cluster in Argo CD', () => {
  it('has the documented name, URL, token and CA', () => {
    const wanted = secretOf(member(), { ...SPEC, argoCD: { project: 'shop' } });
    expect(wanted.object.metadata).toMatchObject({
      name: 'shop--demo',
      namespace: 'argocd',
      labels: { 'argocd.argoproj.io/secret-type': 'cluster', tier: 'gold' },
    });
    expect(['name', 'server', 'project'].map((key) => textOf(wanted, key))).toEqual([
      'shop--demo',
      'https://demo.example.com:6443',
      'shop',
    ]);
    expect(JSON.parse(textOf(wanted, 'config'))).toEqual({
      bearerToken: 'token-of-demo',
      tlsClientConfig: { insecure: false, caData: base64('CA') },
    });
  });

  it('has no label for generators, and is skipped, before the cluster has joined', () => {
    const { labels, annotations } = secretOf(member({ closed: 'Initializing' })).object.metadata;
    expect(labels).not.toHaveProperty('tier');
    expect(annotations).toMatchObject({ [SKIP]: 'true' });
  });

  it('stays a cluster Secret whatever labels the Hub adds', () => {
    const labels = { 'argocd.argoproj.io/secret-type': 'repository' };
    expect(secretOf(member({ labels })).object.metadata.labels).toMatchObject({
      'argocd.argoproj.io/secret-type': 'cluster',
    });
  });
});

describe('a cluster that leaves Argo CD', () => {
  const leaving = member({ closed: 'Leaving', labels: {} });

  it.each<[string, object, string[]]>([
    ['by name', { name: 'shop--demo' }, ['Application argocd/web']],
    ['by URL', { server: 'https://demo.example.com:6443' }, ['Application argocd/web']],
    ['by URL with a slash', { server: 'https://demo.example.com:6443/' }, ['Application argocd/web']],
    ['not another name', { name: 'shop--other' }, []],
    ['not another URL', { server: 'https://other.example.com' }, []],
  ])('counts the Applications whose destination it is: %s', async (_, destination, expected) => {
    const seen = await look({ applications: [app('web', destination)] }, leaving);
    expect(argoCDHub.placements!(leaving, seen)).toEqual(expected);
  });

  it("is skipped and keeps the labels that generators selected, whatever the cluster's own labels are now", async () => {
    const seen = await look({ secrets: [live()], applications: [app('web', { name: 'shop--demo' })] }, leaving);
    const [wanted] = argoCDHub.cordon!(leaving, SPEC, seen);
    expect(wanted?.object.metadata).toMatchObject({
      labels: { tier: 'gold' },
      annotations: { [SKIP]: 'true', 'multi-cluster.demo.io/capacity.cpu': '4' },
    });
    expect(wanted?.object.data).toEqual(live().data);
  });

  it('is not skipped while an Application of it is being deleted, which would never finish', async () => {
    const going = app('web', { name: 'shop--demo' }, { deletionTimestamp: '2026-11-22T12:00:00Z', finalizers: ['x'] });
    const seen = await look({ secrets: [live()], applications: [going] }, leaving);
    const [wanted] = argoCDHub.cordon!(leaving, SPEC, seen);
    expect(wanted?.object.metadata.annotations).not.toHaveProperty(SKIP);
  });

  it('loses its labels first, and its Secret when no Application has resources there', async () => {
    const web = app('web', { name: 'shop--demo' }, { finalizers: ['resources-finalizer.argocd.argoproj.io'] });
    const held = argoCDHub.leave(leaving, SPEC, await look({ secrets: [live()], applications: [web] }, leaving));
    const [withoutLabels] = held[0]?.apply ?? [];
    expect(withoutLabels?.object.metadata.labels).not.toHaveProperty('tier');
    expect(withoutLabels?.object.metadata.annotations).not.toHaveProperty(SKIP);
    expect(held[1]?.waiting).toContain('argocd/web');

    // Once it is withdrawn, keeping new work away does not give it its labels back.
    const withdrawn = await look({ secrets: [live(withoutLabels!.object.metadata)], applications: [web] }, leaving);
    expect(argoCDHub.cordon!(leaving, SPEC, withdrawn)).toEqual([]);

    const free = argoCDHub.leave(leaving, SPEC, await look({ secrets: [live()] }, leaving));
    expect(free[1]?.waiting).toBeUndefined();
  });

  it('does not recreate a deleted Secret', async () => {
    const seen = await look({}, leaving);
    expect(argoCDHub.cordon!(leaving, SPEC, seen)).toEqual([]);
    expect(argoCDHub.leave(leaving, SPEC, seen).flatMap(({ apply = [] }) => apply)).toEqual([]);
  });
});

describe('two clusters with one name', () => {
  const joining = member({ closed: 'Initializing' });
  const other = (data: Record<string, string>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'other', namespace: 'argocd' },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
  });
  it.each<[string, Record<string, string>, string | undefined]>([
    ['the same URL', { name: 'x', server: 'https://demo.example.com:6443/' }, 'CredentialsReady'],
    ['the same name', { name: 'shop--demo', server: 'https://x.example.com' }, 'CredentialsReady'],
    ['neither', { name: 'x', server: 'https://x.example.com' }, undefined],
  ])('with %s', async (_, data, at) => {
    const steps = argoCDHub.join(joining, SPEC, await look({ secrets: [other(data)] }, joining));
    expect(steps.find(({ waiting }) => waiting)?.type).toBe(at);
  });

  it('that are created at once both stay closed, with fresh credentials', async () => {
    const objects = { secrets: [live(), other({ server: 'https://demo.example.com:6443' })] };
    const steps = argoCDHub.join(joining, SPEC, await look(objects, joining));
    const at = steps.find(({ waiting }) => waiting);
    expect([at?.type, at?.apply?.length]).toEqual(['Registered', 1]);
  });
});
