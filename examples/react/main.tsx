/** Starts the page: the broker is `?url=…`, or ws://127.0.0.1:9001. */
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.js'

const url = new URLSearchParams(location.search).get('url') ?? 'ws://127.0.0.1:9001'

const root = document.getElementById('root')
if (root === null) throw new Error('the page has no root')

createRoot(root).render(
  <StrictMode>
    <App url={url} />
  </StrictMode>,
)
