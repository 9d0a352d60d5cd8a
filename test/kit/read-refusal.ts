import { KubeApiError } from '../../operator/kube/errors.ts';

/** What the API server says against it. Empty: nothing. */
export async function readRefusal(action: () => Promise<unknown>): Promise<string> {
  try {
    await action();
  } catch (error) {
    if (error instanceof KubeApiError) return error.message;
    throw error;
  }
  return '';
}
