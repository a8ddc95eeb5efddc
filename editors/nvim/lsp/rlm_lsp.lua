-- The configuration that `vim.lsp.enable('rlm_lsp')` reads (Neovim 0.11 or later); see `:help rlm_lsp`.
-- Override it in your own configuration: `vim.lsp.config('rlm_lsp', { ... })`.
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
    -- When findings change, Neovim 0.12 requests only workspace diagnostics from a server that supports them, and drops
    -- their results for open buffers. From other servers it requests the diagnostics of each buffer.
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
