import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CloudResource, Endpoint } from './model.ts';
import type { Store } from './store.ts';

const FOLDER = 'endpoints';
const HOOK = 'endpoint-hook.json';

const fileOf = (resource: CloudResource): string => `${resource.name}.json`;

/** The real API server behind the cluster: what a test wrote to `endpoints/<name of the cluster>.json`, or what its hook gave. */
export const endpointOf = (store: Store, resource: CloudResource): Endpoint | undefined =>
  store.readJSON<Endpoint>(FOLDER, fileOf(resource));

/**
 * From now on clusters that have no file ask this URL: POST with the resource as JSON, to be answered with an Endpoint; DELETE when it is
 * gone.
 */
export const setEndpointHook = (store: Store, url: string | undefined): void => store.writeJSON({ url }, HOOK);

const hookOf = (store: Store): string | undefined => store.readJSON<{ url?: string }>(HOOK)?.url;

const call = async (url: string, method: 'POST' | 'DELETE', resource: CloudResource): Promise<Response> => {
  const body = JSON.stringify(resource);
  const response = await fetch(url, { method, body, headers: { 'content-type': 'application/json' } });
  if (!response.ok)
    throw new Error(`the endpoint hook ${url} answered ${response.status} to ${method} ${resource.name}`);
  return response;
};

/** Obtains a real API server for a cluster that is being made; none when nobody offers one. */
export async function askForEndpoint(store: Store, resource: CloudResource): Promise<void> {
  const hook = hookOf(store);
  if (hook === undefined || endpointOf(store, resource)) return;
  store.writeJSON(await (await call(hook, 'POST', resource)).json(), FOLDER, fileOf(resource));
}

/** Gives back what askForEndpoint obtained. */
export async function leaveEndpoint(store: Store, resource: CloudResource): Promise<void> {
  const hook = hookOf(store);
  if (hook === undefined || !endpointOf(store, resource)) return;
  rmSync(join(store.dir, FOLDER, fileOf(resource)), { force: true });
  await call(hook, 'DELETE', resource);
}
