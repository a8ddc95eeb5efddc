-- How to start rlm-lsp: what `vim.lsp.enable('rlm_lsp')` reads (Neovim 0.11 or later); see `:help rlm_lsp`.
-- Change it in your own configuration: `vim.lsp.config('rlm_lsp', { ... })`.
return {
  cmd = { 'rlm-lsp', 'serve' },
  filetypes = {
    'c',
    'cpp',
    'cs',
    'go',
    'java',
    'javascript',
    'javascriptreact',
    'kotlin',
    'php',
    'python',
    'ruby',
    'rust',
    'scala',
    'swift',
    'typescript',
    'typescriptreact',
  },
  root_markers = { 'rlm-lsp.toml', 'pyproject.toml', '.git' },
  on_init = function(client)
    -- When the server tells that findings have changed, Neovim 0.12 asks a server that has those of the workspace for
    -- them alone, and drops what they say about open buffers. A server that has not is asked for each buffer's.
    local provider = client.server_capabilities.diagnosticProvider
    if provider then
      provider.workspaceDiagnostics = false
    end
  end,
  handlers = {
    ['workspace/inlayHint/refresh'] = function(...)
      return require('rlm_lsp').refresh_hints(...)
    end,
    ['window/showMessage'] = function(...)
      return require('rlm_lsp').show_message(...)
    end,
  },
}
