/** Fast Refresh, as a development server installs it: import this before React. */
import * as refresh from 'react-refresh/runtime'

refresh.injectIntoGlobalHook(globalThis)

export { refresh }
