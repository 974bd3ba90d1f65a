//! Logging in through the GSSAPI of MIT Kerberos (RFC 2743, RFC 4178 for SPNEGO).

#![expect(
    unsafe_code,
    reason = "where keys are read from is an extension of MIT that the safe binding lacks, and its configuration file \
              is named by an environment variable only"
)]

use crate::{Auth, LoginError, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use libgssapi::context::{ClientCtx, CtxFlags};
use libgssapi::credential::{Cred, CredUsage};
use libgssapi::error::{Error, MajorFlags};
use libgssapi::name::Name;
use libgssapi::oid::{GSS_MECH_KRB5, GSS_MECH_SPNEGO, GSS_NT_KRB5_PRINCIPAL, Oid, OidSet};
use libgssapi_sys as sys;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A ticket that lives no longer than this is replaced, so that it does not run out on its way.
const LEAST_LIFETIME: Duration = Duration::from_mins(2);

/// The file that the environment variable names, once it is set here.
static CONFIG: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Numbers the caches in memory.
static CACHES: AtomicUsize = AtomicUsize::new(0);

/// Logs in with Kerberos, and makes a header for each request: a token is of one request only.
///
/// Tickets are kept in the memory of the process and replaced before they run out.
pub struct Login {
    settings: Settings,
    /// Empty with a password.
    keytab: CString,
    cache: String,
    held: Mutex<Option<Cred>>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Login {
    /// Takes the settings over; sends nothing yet. Called while the configuration is read: before
    /// the threads begin that request tickets.
    ///
    /// # Errors
    /// If another configuration of Kerberos is in use, or a path has a zero byte.
    pub fn new(settings: &Settings) -> Result<Self, LoginError> {
        let keytab = match &settings.auth {
            Auth::Keytab(path) => CString::new(path.as_os_str().as_bytes())
                .map_err(|_| LoginError::ZeroByte("keytab"))?,
            Auth::Password(_) => CString::default(),
        };
        use_config(&settings.config)?;
        let number = CACHES.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            settings: settings.clone(),
            keytab,
            cache: format!("MEMORY:skidder-{number}"),
            held: Mutex::new(None),
        })
    }

    /// The value of `Authorization` for one request to the server on `host`. It may have to query
    /// the servers of the realm, and then takes as long as these do.
    ///
    /// # Errors
    /// If Kerberos does not know the user or the server, or its servers do not answer.
    pub fn header(&self, host: &str) -> Result<String, LoginError> {
        let service = self.settings.service_of(host);
        let failed =
            |error: Error| LoginError::Service { service: service.clone(), why: one_line(&error) };
        let credentials = self.credentials()?;
        let name = Name::new(service.as_bytes(), Some(GSS_NT_KRB5_PRINCIPAL)).map_err(failed)?;
        let mut context =
            ClientCtx::new(Some(credentials), name, CtxFlags::empty(), Some(GSS_MECH_SPNEGO));
        let token = context.step(None, None).inspect_err(|_| self.forget()).map_err(failed)?;
        let token = token.as_deref().unwrap_or_default();
        Ok(format!("Negotiate {}", BASE64.encode(token)))
    }

    /// The credentials, new ones if there are none or they run out.
    fn credentials(&self) -> Result<Cred, LoginError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(credentials) = &*held
            && credentials.lifetime().is_ok_and(|left| left > LEAST_LIFETIME)
        {
            return Ok(credentials.clone());
        }
        let credentials = self.acquire()?;
        *held = Some(credentials.clone());
        Ok(credentials)
    }

    /// After a failure the next request begins anew.
    fn forget(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn acquire(&self) -> Result<Cred, LoginError> {
        self.acquire_for(&GSS_MECH_SPNEGO).map_err(|error| {
            // SPNEGO only reports that none of its mechanisms has credentials; Kerberos reports why.
            let error = self.acquire_for(&GSS_MECH_KRB5).err().unwrap_or(error);
            let by = match &self.settings.auth {
                Auth::Keytab(path) => format!("the keys in `{}`", path.display()),
                Auth::Password(_) => "its password".to_owned(),
            };
            LoginError::User { principal: self.settings.principal(), by, why: one_line(&error) }
        })
    }

    fn acquire_for(&self, mechanism: &Oid<'static>) -> Result<Cred, Error> {
        let principal = self.settings.principal();
        match &self.settings.auth {
            Auth::Password(password) => {
                let name = Name::new(principal.as_bytes(), Some(GSS_NT_KRB5_PRINCIPAL))?;
                let mechanisms = OidSet::singleton(*mechanism)?;
                let (usage, mechanisms) = (CredUsage::Initiate, Some(&mechanisms));
                Cred::acquire_with_password(Some(&name), password.reveal(), None, usage, mechanisms)
            }
            Auth::Keytab(_) => acquire_from(&principal, &self.keytab, &self.cache, mechanism),
        }
    }
}

/// Credentials of a principal by its keys in a keytab; tickets are kept in `cache`.
fn acquire_from(
    principal: &str,
    keytab: &CStr,
    cache: &str,
    mechanism: &Oid<'static>,
) -> Result<Cred, Error> {
    let cache = CString::new(cache).expect("its name is ours");
    let mut elements = [
        sys::gss_key_value_element_desc { key: c"client_keytab".as_ptr(), value: keytab.as_ptr() },
        sys::gss_key_value_element_desc { key: c"ccache".as_ptr(), value: cache.as_ptr() },
    ];
    let store = sys::gss_key_value_set_desc { count: 2, elements: elements.as_mut_ptr() };
    let of = |oid: &Oid<'static>| sys::gss_OID_desc {
        length: oid.len() as sys::OM_uint32,
        elements: oid.as_ptr().cast_mut().cast(),
    };
    let (mut mechanism, mut kind) = (of(mechanism), of(&GSS_NT_KRB5_PRINCIPAL));
    let mut mechanisms = sys::gss_OID_set_desc { count: 1, elements: &raw mut mechanism };
    let mut text = sys::gss_buffer_desc {
        length: principal.len(),
        value: principal.as_ptr().cast_mut().cast(),
    };
    let mut minor = 0;
    let mut name: sys::gss_name_t = ptr::null_mut();
    let mut credentials: sys::gss_cred_id_t = ptr::null_mut();
    // SAFETY: all pointers are of values that outlive the calls, which only read what is passed to
    // be read; `name` is released once, and `credentials` belong to what `Cred` makes of them.
    unsafe {
        let major =
            sys::gss_import_name(&raw mut minor, &raw mut text, &raw mut kind, &raw mut name);
        checked(major, minor)?;
        let major = sys::gss_acquire_cred_from(
            &raw mut minor,
            name,
            sys::_GSS_C_INDEFINITE,
            &raw mut mechanisms,
            sys::GSS_C_INITIATE as sys::gss_cred_usage_t,
            &raw const store,
            &raw mut credentials,
            ptr::null_mut(),
            ptr::null_mut(),
        );
        let mut ignored = 0;
        sys::gss_release_name(&raw mut ignored, &raw mut name);
        checked(major, minor)?;
        Ok(Cred::from_c(credentials))
    }
}

fn checked(major: u32, minor: u32) -> Result<(), Error> {
    if major == sys::GSS_S_COMPLETE {
        return Ok(());
    }
    Err(Error { major: MajorFlags::from_bits_retain(major), minor })
}

/// The error in one line.
fn one_line(error: &Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Has the library read this configuration: it takes the path from the environment only.
fn use_config(path: &Path) -> Result<(), LoginError> {
    let mut config = CONFIG.lock().unwrap_or_else(PoisonError::into_inner);
    match &*config {
        Some(used) if used == path => return Ok(()),
        Some(used) => {
            return Err(LoginError::OtherConfig {
                wanted: path.display().to_string(),
                used: used.display().to_string(),
            });
        }
        None => {}
    }
    // SAFETY: it is set once, while the configuration is read, and the threads that request tickets
    // (whose library reads it) begin after that; the program itself reads variables through std,
    // which takes a lock.
    unsafe { std::env::set_var("KRB5_CONFIG", path) };
    *config = Some(path.to_owned());
    Ok(())
}
